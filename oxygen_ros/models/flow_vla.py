# SPDX-License-Identifier: Apache-2.0
"""What the families have in common: vision, language, and the shape of an action pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..engine.model import ActionPass, Attend, PrefixKV
from ..types import CameraFrame, FloatArray
from .errors import CheckpointError
from .language_expert import LanguageExpert
from .layers import LayerAdapter, Rope, RopeRows
from .processing import Processing
from .vision import VisionTower
from .vla_config import VLAConfig
from .weights import WeightReader

_NO_PROCESSING = (
    'this model was loaded without its pre- and post-processing: '
    'expected policy_preprocessor.json or norm_stats.json beside its weights'
)


@dataclass(slots=True)
class FlowPass:
    """One action pass between two denoising steps."""

    num_steps: int
    actions: Tensor  # [action_horizon, padded_action_dim] float32, noisy until the last step
    state: Tensor | None  # [1, padded_state_dim], normalised
    position: int  # of the suffix's first token
    rope: RopeRows  # of the actions
    velocity: Tensor | None = None  # of the last step taken
    shared: object = None  # what the passes on one prefix share


class FlowVLA(ABC):
    """A `VLAModel` but for its action expert, which a family's class adds.

    Only the thread that owns the engine may call it. It keeps nothing between calls.

    :param tensors: weights under our names.
    :param processing: None: tensors in, tensors out (parity, sizes).
    :param adapters: of the language layers, for tokens of text requests alone.
    :raises CheckpointError: lists every tensor that is missing, unexpected or of another shape.
    """

    projector = 'multi_modal_projector.'
    has_unit_offset = True  # stored norm weights lack their one (Gemma)
    may_be_tied = True  # output head and embedding

    def __init__(
        self,
        config: VLAConfig,
        tensors: Mapping[str, Tensor],
        checksum: str,
        device: torch.device,
        dtype: torch.dtype,
        action_dt_s: float,
        processing: Processing | None = None,
        adapters: Sequence[LayerAdapter | None] | None = None,
    ) -> None:
        self.config, self.checksum = config, checksum
        self.device, self.dtype = device, dtype
        self.processing = processing
        self._adapters = adapters or [None] * config.num_layers
        eos_ids = () if processing is None else processing.tokenizer.eos_ids
        self.spec = config.spec(action_dt_s, eos_ids)
        reader = WeightReader(tensors, device, dtype)
        with torch.inference_mode():
            self._load_prefix(reader)
            self._load_actions(reader)
            try:
                reader.finish()
            except ValueError as error:
                raise CheckpointError(str(error)) from error
            self._offsets = torch.arange(self.spec.action_suffix_tokens, device=device)

    def _load_prefix(self, reader: WeightReader) -> None:
        config = self.config
        self._vision = VisionTower(
            reader.scope('vision_tower.'), reader.scope(self.projector), config.vision
        )
        self._rope = Rope(
            config.language.head_dim, config.max_positions, self.device, config.rope_base
        )
        self._language = LanguageExpert(
            reader.scope('language_model.'),
            reader,
            config.language,
            config.num_layers,
            config.vocab_size,
            self._rope,
            self.has_unit_offset,
            self.may_be_tied,
        )

    def _load_actions(self, reader: WeightReader) -> None:
        """Load the output projection; a family adds its expert."""
        width, dim = self.config.expert.width, self.config.padded_action_dim
        self._action_out = reader.take(
            'action_out_proj.weight', dim, width, dtype=torch.float32
        ).t()
        self._action_out_bias = reader.take('action_out_proj.bias', dim, dtype=torch.float32)

    # The prefix, and text.

    def _process(self) -> Processing:
        if self.processing is None:
            raise CheckpointError(_NO_PROCESSING)
        return self.processing

    def preprocess(self, frame: CameraFrame) -> Tensor:
        """Fit an image as the checkpoint's makers do: -> [3, image_px, image_px] in [-1, 1].

        :raises ValueError: the image is no uint8 [height, width, 3].
        """
        image = self._process().image(frame.image, self.config.vision.image_px)
        return image.to(self.device, self.dtype)

    @torch.inference_mode()
    def encode_image(self, image: Tensor) -> Tensor:
        """Run the vision tower: [3, image_px, image_px] -> [tokens_per_image, width]."""
        return self._vision(image)

    @torch.inference_mode()
    def embed_tokens(self, tokens: Tensor) -> Tensor:
        """[num_tokens] int64 -> [num_tokens, width]."""
        return self._language.embed(tokens)

    @torch.inference_mode()
    def run_layer(self, layer: int, hidden: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Run one language layer; hidden is left as it was. Positions below max_positions."""
        return self._language.run_layer(layer, hidden, positions, attend)

    @torch.inference_mode()
    def keys_values(self, layer: int, hidden: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Keys after RoPE and values of a language layer, each [n, num_kv_heads, head_dim]."""
        return self._language.keys_values(layer, hidden, positions)

    @torch.inference_mode()
    def run_text_layer(
        self, layer: int, hidden: Tensor, positions: Tensor, attend: Attend
    ) -> Tensor:
        """As `run_layer`, with the text adapter where one is loaded."""
        return self._language.run_layer(layer, hidden, positions, attend, self._adapters[layer])

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """[num_tokens, width] -> [num_tokens, vocab_size] float32."""
        return self._language.logits(hidden)

    def action_prompt(self, instruction: str) -> Sequence[int]:
        """Return nothing: the instruction is part of the prefix."""
        return ()

    def prefix_prompt(self, instruction: str, state: FloatArray | None) -> Sequence[int]:
        """Tokens of the instruction, for pi0.5 with the state as text."""
        return self._process().prompt_tokens(instruction, state)

    def text_prompt(self, text: str) -> Sequence[int]:
        """Tokens of the text and a newline; never cut off."""
        return self._process().tokenizer.encode(text + '\n')

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """UTF-8 bytes of tokens, special tokens left out; may end within a character."""
        return self._process().tokenizer.decode(tokens)

    # Actions.

    def noise_shape(self) -> tuple[int, int]:
        """Shape of the noise: (action_horizon, padded_action_dim)."""
        return (self.config.action_horizon, self.config.padded_action_dim)

    def prepare_prefix(self, prefix_kv: PrefixKV) -> object:
        """Return None: passes on one prefix share nothing but the prefix."""
        return None

    def begin_action(self, noise: Tensor, state: FloatArray | None, position: int) -> FlowPass:
        """Start a pass; see `VLAModel.begin_action`.

        :raises ValueError: noise or state has another shape, or the state is needed and absent.
        """
        row = None
        if self.spec.action_head_tokens:
            if state is None:
                raise ValueError(
                    'state: expected measured joints, which this model needs in '
                    'each pass, got none'
                )
            row = self._process().state_row(state, self.config.padded_state_dim)
        return self.begin_pass(noise, row, position)

    @torch.inference_mode()
    def begin_pass(self, noise: Tensor, state: Tensor | None, position: int) -> FlowPass:
        """Start a pass from the model's own terms.

        :param noise: [action_horizon, padded_action_dim].
        :param state: [1, padded_state_dim], normalised; None for pi0.5.
        """
        if tuple(noise.shape) != self.noise_shape():
            raise ValueError(
                f'noise: expected shape {list(self.noise_shape())}, got {list(noise.shape)}'
            )
        if state is not None:
            state = state.to(self.device, self.dtype)
        num_head = self.spec.action_head_tokens
        return FlowPass(
            self.config.num_denoising_steps,
            noise.to(self.device, torch.float32, copy=True),
            state,
            position,
            self._rope.rows(self._offsets[num_head:] + position),
        )

    def prepare_action(  # noqa: B027 a hook, which most families leave alone
        self, action: ActionPass, shared: object, attend: Attend
    ) -> None:
        """Do nothing; for families with a state token see there."""

    @torch.inference_mode()
    def denoise_step(self, action: ActionPass, step: int, attend: Attend) -> None:
        """Advance the pass by one Euler step of 1 / num_steps."""
        assert isinstance(action, FlowPass)
        hidden = self._expert_output(action, step, attend)
        action.velocity = torch.addmm(
            self._action_out_bias, hidden.to(torch.float32), self._action_out
        )
        action.actions.add_(action.velocity, alpha=-1.0 / action.num_steps)

    @abstractmethod
    def _expert_output(self, action: FlowPass, step: int, attend: Attend) -> Tensor:
        """Return the expert's output for the noisy actions: [action_horizon, expert width]."""

    def finish_action(self, action: ActionPass) -> FloatArray:
        """Return the chunk un-normalised, [action_horizon, action_dim]; waits for the device."""
        assert isinstance(action, FlowPass)
        return self._process().actions(action.actions.cpu().numpy())
