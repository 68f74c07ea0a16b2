# SPDX-License-Identifier: Apache-2.0
"""Small models made and run by transformers, written as parity folders (doc/models.md).

    python test/models/originals.py test/models/fixtures

PI0 and PaliGemma are transformers' own classes. pi0.5 is not in transformers: there, the norms of
its Gemma are replaced by adaRMS and each branch is gated, as openpi `models/gemma.py` says.
"""

from __future__ import annotations

from collections.abc import Callable
import json
import math
from pathlib import Path
import sys
from typing import Any

from safetensors.torch import save_file
import torch
from torch import nn, Tensor
from transformers import (
    PaliGemmaConfig,
    PaliGemmaForConditionalGeneration,
    PI0Config,
    PI0ForConditionalGeneration,
    PreTrainedTokenizerFast,
)

from oxygen_ros.models.key_names import canonical_name
from oxygen_ros.models.layers import LayerShape
from oxygen_ros.models.make_checkpoint import draw, make_tokenizer, policy_config
from oxygen_ros.models.vision import VisionShape
from oxygen_ros.models.vla_config import Family, VLAConfig

NUM_TEXT_STEPS = 6
TEXTS = (
    'pick up the red cup\n',
    'Task: stack, State: 12 -1 255;\nAction: ',
    '',
    'größer\n',
    'long ' * 60,
)


def small(family: Family, layers: int = 2) -> VLAConfig:
    """Return sizes for files of a quarter of a megabyte."""
    heads = (2, 1, 16)
    return VLAConfig(
        family,
        VisionShape(28, 14, 24, 32, 2, 2, 32),
        LayerShape(32, 48, *heads),
        LayerShape(24, 32, *heads),
        layers,
        64,
        6,
        8,
        7,
        8,
        7,
        12,
        ('left', 'right'),
    )


def _paligemma_config(config: VLAConfig) -> dict[str, Any]:
    language, vision = config.language, config.vision
    return {
        'text_config': {**_gemma_config(language, config), 'vocab_size': config.vocab_size},
        'vision_config': {
            'model_type': 'siglip_vision_model',
            'hidden_size': vision.width,
            'intermediate_size': vision.mlp_width,
            'num_hidden_layers': vision.num_layers,
            'num_attention_heads': vision.num_heads,
            'patch_size': vision.patch_px,
            'image_size': vision.image_px,
            'vision_use_head': False,
        },
        'image_token_index': config.vocab_size - 1,
        'projection_dim': language.width,
        'hidden_size': language.width,
        'bos_token_id': 2,
        'eos_token_id': 1,
        'pad_token_id': 0,
    }


def _gemma_config(shape: LayerShape, config: VLAConfig) -> dict[str, Any]:
    return {
        'model_type': 'gemma',
        'hidden_size': shape.width,
        'intermediate_size': shape.mlp_width,
        'num_hidden_layers': config.num_layers,
        'num_attention_heads': shape.num_heads,
        'num_key_value_heads': shape.num_kv_heads,
        'head_dim': shape.head_dim,
        'hidden_activation': 'gelu_pytorch_tanh',
        'hidden_act': 'gelu_pytorch_tanh',
    }


def _build(config: VLAConfig, seed: int) -> PI0ForConditionalGeneration:
    paligemma = {**_paligemma_config(config), 'model_type': 'paligemma'}
    model = PI0ForConditionalGeneration(
        PI0Config(
            vlm_config=paligemma,
            dit_config=_gemma_config(config.expert, config),
            chunk_size=config.action_horizon,
            max_state_dim=config.padded_state_dim,
            max_action_dim=config.padded_action_dim,
            num_inference_steps=config.num_denoising_steps,
            attn_implementation='eager',
        )
    )
    return _randomise(model.eval(), seed)


@torch.no_grad()
def _randomise(model: Any, seed: int) -> Any:
    for name, parameter in model.named_parameters():
        parameter.copy_(draw(canonical_name(name), tuple(parameter.shape), seed))
    return model


def _inputs(config: VLAConfig, seed: int) -> dict[str, Tensor]:
    """Return two rows, the second with padded text."""
    generator = torch.Generator().manual_seed(seed)
    px, length = config.vision.image_px, config.max_prompt_tokens
    io = {
        f'image.{i}': torch.rand(2, 3, px, px, generator=generator) * 2.0 - 1.0
        for i in range(len(config.cameras))
    }
    io |= {f'image_mask.{i}': torch.ones(2, dtype=torch.bool) for i in range(len(config.cameras))}
    tokens = torch.randint(3, config.vocab_size - 4, (2, length), generator=generator)
    mask = torch.ones(2, length, dtype=torch.bool)
    tokens[1, 7:], mask[1, 7:] = 0, False
    noise = torch.randn(2, *(config.action_horizon, config.padded_action_dim), generator=generator)
    io |= {'tokens': tokens, 'token_mask': mask, 'noise': noise}
    if config.family is Family.PI0:
        io['state'] = torch.randn(2, config.padded_state_dim, generator=generator)
    return io


def _prefix(
    model: PI0ForConditionalGeneration, config: VLAConfig, io: dict[str, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids with image placeholders, the mask over all, and the images."""
    num_images = len(config.cameras)
    image_ids = torch.full((2, num_images * config.vision.num_tokens), config.vocab_size - 1)
    ids = torch.cat((image_ids, io['tokens']), 1)
    mask = torch.cat((torch.ones_like(image_ids), io['token_mask'].long()), 1)
    pixels = torch.stack([io[f'image.{i}'] for i in range(num_images)], 1)
    return ids, mask, pixels


@torch.no_grad()
def _prefix_cache(
    model: PI0ForConditionalGeneration, ids: Tensor, mask: Tensor, pixels: Tensor
) -> Any:
    embeds = model.model.embed_prefix(ids, pixels, torch.ones(pixels.shape[:2], dtype=torch.bool))
    return model.model.vlm(
        inputs_embeds=embeds,
        attention_mask=mask,
        position_ids=mask.cumsum(-1) - 1,
        token_type_ids=torch.zeros_like(mask),
        use_cache=True,
    ).cache


def _checks(cache: Any, mask: Tensor) -> dict[str, Tensor]:
    valid = mask.bool()
    io = {'check.prefix_pad': valid}
    for index, name in ((0, 'first'), (-1, 'last')):
        layer = cache.layers[index]
        io[f'check.prefix_k.{name}'] = layer.keys * valid[:, None, :, None]
        io[f'check.prefix_v.{name}'] = layer.values * valid[:, None, :, None]
    return io


def _save(folder: Path, model: nn.Module, config: VLAConfig, io: dict[str, Tensor]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, folder / 'model.safetensors')
    save_file(
        {name: tensor.detach().contiguous() for name, tensor in io.items()},
        folder / 'io.safetensors',
    )
    (folder / 'config.json').write_text(json.dumps(policy_config(config), indent=1) + '\n')
    for name in ('model.safetensors', 'io.safetensors'):
        (folder / name).chmod(0o644)


def _embed_time(time: Tensor, width: int) -> Tensor:
    """Embed flow times [n] float32 in float64, as LeRobot and openpi do: [n, width] float32."""
    fraction = torch.linspace(0.0, 1.0, width // 2, dtype=torch.float64)
    period = 4e-3 * (4.0 / 4e-3) ** fraction
    phase = time.double()[:, None] * 2.0 * math.pi / period
    return torch.cat((phase.sin(), phase.cos()), 1).float()


@torch.no_grad()
def write_pi0(folder: Path, seed: int, layers: int = 2, exact_time: bool = True) -> None:
    """Write transformers' PI0 with its actions.

    :param exact_time: its time embedding in float64 in place of its own float32.
    """
    config = small(Family.PI0, layers)
    model, io = _build(config, seed), _inputs(config, seed)
    if exact_time:
        model.embed_action_time.sinusoid_embeds.forward = lambda time: _embed_time(
            time, config.expert.width
        )
    ids, mask, pixels = _prefix(model, config, io)
    present = torch.ones(pixels.shape[:2], dtype=torch.bool)
    cache = _prefix_cache(model, ids, mask, pixels)
    io |= _checks(cache, mask)
    io['check.velocity.first'] = model(
        state=io['state'],
        noise=io['noise'],
        timestep=torch.ones(2),
        attention_mask=mask,
        pixel_attention_mask=present,
        cache=cache,
    ).logits
    io['actions'] = model.sample_actions(
        io['state'],
        ids,
        pixels,
        noise=io['noise'].clone(),
        attention_mask=mask,
        pixel_attention_mask=present,
    )
    _save(folder, model, config, io)


class _AdaNorm(nn.Module):
    """norm(x) * (1 + scale) + shift, the gate kept for the branch."""

    def __init__(self, width: int, condition: Callable[[], Tensor]) -> None:
        super().__init__()
        self.dense = nn.Linear(width, 3 * width)
        self._condition = condition
        self.gate = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        scale, shift, self.gate = self.dense(self._condition())[:, None].chunk(3, -1)
        norm = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return norm * (1.0 + scale) + shift


class _Pi05(nn.Module):
    """The modules of pi0.5 around transformers' PaliGemma and Gemma."""

    def __init__(self, config: VLAConfig, seed: int) -> None:
        super().__init__()
        inner = _build(config, seed)
        self.model = inner.model
        width = config.expert.width
        self.embed_action_time = nn.ModuleDict(
            {name: nn.Linear(width, width) for name in ('time_mlp_in', 'time_mlp_out')}
        )
        self.embed_action_time['action_in_proj'] = inner.embed_action_time.action_in_proj
        self.action_out_proj = inner.action_out_proj
        self.condition = torch.empty(0)
        dit = self.model.dit
        dit.norm = _AdaNorm(width, lambda: self.condition)
        for layer in dit.layers:
            layer.input_layernorm = _AdaNorm(width, lambda: self.condition)
            layer.post_attention_layernorm = _AdaNorm(width, lambda: self.condition)
            layer.self_attn.register_forward_hook(
                lambda _, __, out, norm=layer.input_layernorm: (out[0] * norm.gate, *out[1:])
            )
            layer.mlp.register_forward_hook(
                lambda _, __, out, norm=layer.post_attention_layernorm: out * norm.gate
            )
        _randomise(self, seed)

    def velocity(self, x: Tensor, time: float, cache: Any, mask: Tensor) -> Tensor:
        """Return the velocity at a flow time; the cache is left as it was."""
        horizon = x.shape[1]
        hidden = _embed_time(torch.full((len(x),), time), self.action_out_proj.in_features)
        for name in ('time_mlp_in', 'time_mlp_out'):
            hidden = nn.functional.silu(self.embed_action_time[name](hidden))
        self.condition = hidden
        seen = torch.cat((mask.bool(), torch.ones(len(x), horizon, dtype=torch.bool)), 1)
        seen = seen[:, None, None].expand(-1, 1, horizon, -1)
        additive = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
        positions = mask.sum(1, keepdim=True) + torch.arange(horizon)
        out = self.model.dit(
            inputs_embeds=self.embed_action_time['action_in_proj'](x),
            attention_mask=additive,
            position_ids=positions,
            cache=cache,
            use_cache=True,
        ).last_hidden_state
        cache.crop(mask.shape[1] - cache.get_seq_length())
        return self.action_out_proj(out)


@torch.no_grad()
def write_pi05(folder: Path, seed: int, layers: int = 2) -> None:
    """Write a pi0.5 with its actions."""
    config = small(Family.PI05, layers)
    model, io = _Pi05(config, seed).eval(), _inputs(config, seed)
    ids, mask, pixels = _prefix(model, config, io)
    cache = _prefix_cache(model, ids, mask, pixels)
    io |= _checks(cache, mask)
    x = io['noise'].clone()
    for step in range(config.num_denoising_steps):
        velocity = model.velocity(x, 1.0 - step / config.num_denoising_steps, cache, mask)
        io.setdefault('check.velocity.first', velocity)
        x = x - velocity / config.num_denoising_steps
    io['actions'] = x
    _save(folder, model, config, io)


@torch.no_grad()
def write_paligemma(folder: Path, seed: int, layers: int = 2) -> None:
    """Write transformers' PaliGemma with a greedy answer."""
    config = small(Family.PALIGEMMA, layers)
    values = _paligemma_config(config)
    values['text_config']['tie_word_embeddings'] = False
    model = PaliGemmaForConditionalGeneration(
        PaliGemmaConfig(**values, tie_word_embeddings=False, attn_implementation='eager')
    )
    model = _randomise(model.eval(), seed)
    inputs = _inputs(config, seed)
    pixels = torch.cat((inputs['image.0'][:1], inputs['image.1'][:1]))
    prompt = inputs['tokens'][:1]
    image_ids = torch.full((1, 2 * config.vision.num_tokens), config.vocab_size - 1)
    ids = torch.cat((image_ids, prompt), 1)
    out = model(
        input_ids=ids,
        pixel_values=pixels,
        attention_mask=torch.ones_like(ids),
        token_type_ids=torch.zeros_like(ids),
        use_cache=True,
    )
    cache = out.cache if hasattr(out, 'cache') else out.past_key_values
    io = {'pixel_values': pixels, 'prompt_ids': prompt}
    io |= {
        name: tensor.clone()
        for name, tensor in _checks(cache, torch.ones_like(ids)).items()
        if name != 'check.prefix_pad'
    }
    tokens, logits = [], []
    for step in range(NUM_TEXT_STEPS):
        logits.append(out.logits[:, -1])
        tokens.append(logits[-1].argmax(-1, keepdim=True))
        mask = torch.ones(1, ids.shape[1] + step + 1, dtype=torch.long)
        out = model(input_ids=tokens[-1], attention_mask=mask, cache=cache, use_cache=True)
    io |= {'tokens': torch.cat(tokens, 1), 'logits': torch.stack(logits, 1)}
    _save(folder, model, config, io)


def write_tokens(path: Path) -> None:
    """Write ids and masks of transformers' tokenizer, padded and cut to 200."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=make_tokenizer(), pad_token='<pad>', padding_side='right'
    )
    rows = []
    for text in TEXTS:
        encoded = tokenizer(text, max_length=200, padding='max_length', truncation=True)
        rows.append({'text': text, 'ids': encoded['input_ids'], 'mask': encoded['attention_mask']})
    path.write_text(json.dumps(rows) + '\n')


WRITERS: dict[str, Callable[[Path, int], None]] = {
    'pi0': write_pi0,
    'pi05': write_pi05,
    'paligemma': write_paligemma,
}

if __name__ == '__main__':
    torch.set_num_threads(1)
    out = Path(sys.argv[1])
    for name, writer in WRITERS.items():
        writer(out / name, 11)
    write_tokens(out / 'tokens.json')
