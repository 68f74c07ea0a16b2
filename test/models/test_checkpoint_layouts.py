# SPDX-License-Identifier: Apache-2.0
"""The same weights under every naming and layout give the same model."""

from __future__ import annotations

from collections.abc import Callable
import json
from pathlib import Path
import shutil

from checkpoints import small_folder, small_model, write_json
import numpy as np
import pytest
from safetensors.torch import load_file, save_file
import torch

from oxygen_ros.cli import main
from oxygen_ros.models.checkpoint import load_checkpoint
from oxygen_ros.models.config_file import ConfigFile, read_config
from oxygen_ros.models.flow_vla import FlowVLA
from oxygen_ros.models.images import ImageConvention
from oxygen_ros.models.key_names import canonical_name
from oxygen_ros.models.make_checkpoint import lerobot_name
from oxygen_ros.models.normalise import NormMode
from oxygen_ros.models.paged_sequence import PagedSequence
from oxygen_ros.models.presets import preset
from oxygen_ros.models.prompts import PromptStyle
from oxygen_ros.models.tensor_shapes import tensor_shapes
from oxygen_ros.models.vla_config import Family

STATE = torch.linspace(-1.0, 1.0, 32)[None]


def actions(model: FlowVLA) -> torch.Tensor:
    """Return the actions of a fixed input."""
    generator = torch.Generator().manual_seed(0)
    px = model.config.vision.image_px
    images = [torch.rand(3, px, px, generator=generator) * 2 - 1 for _ in range(2)]
    sequence = PagedSequence(model, 'sdpa', 64, 32)
    sequence.prefill(images, torch.arange(10, 20))
    return sequence.act(torch.randn(model.noise_shape(), generator=generator), STATE)[1].actions


@pytest.mark.parametrize('family', ['pi05', 'pi0', 'smolvla'])
def test_our_names_and_lerobots_are_each_others_inverse(family: str) -> None:
    for name in tensor_shapes(small_model(family).config):
        assert canonical_name(lerobot_name(name, Family(family))) == name


def _rename(change: Callable[[str], str]) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        tensors = load_file(folder / 'model.safetensors')
        save_file(
            {change(name): tensor for name, tensor in tensors.items()},
            folder / 'model.safetensors',
        )

    return harm


def _shard(folder: Path) -> None:
    tensors = load_file(folder / 'model.safetensors')
    (folder / 'model.safetensors').unlink()
    weight_map = {name: f'part-{index % 2}.safetensors' for index, name in enumerate(tensors)}
    for part in set(weight_map.values()):
        save_file(
            {name: tensors[name] for name, where in weight_map.items() if where == part},
            folder / part,
        )
    write_json(folder / 'model.safetensors.index.json', {'weight_map': weight_map})


LAYOUTS = {
    'openpi': _rename(lambda name: name.removeprefix('model.')),
    'older transformers': _rename(
        lambda name: (
            name.replace('paligemma.model.language_model.', 'paligemma.language_model.model.')
            .replace('paligemma.lm_head', 'paligemma.language_model.lm_head')
            .replace('paligemma.model.', 'paligemma.')
        )
    ),
    'newer transformers': _rename(lambda name: name.replace('vision_model.', '')),
    'shards': _shard,
}


@pytest.mark.parametrize('layout', LAYOUTS)
def test_every_layout_gives_the_same_model(tmp_path: Path, layout: str) -> None:
    folder = Path(shutil.copytree(small_folder('pi05'), tmp_path / 'c'))
    LAYOUTS[layout](folder)
    model = load_checkpoint(folder)
    assert model.checksum == small_model('pi05').checksum
    assert torch.equal(actions(model), actions(small_model('pi05')))


@pytest.mark.parametrize('missing', ['embed_tokens', 'lm_head', None])
def test_tied_tables_are_one_memory(tmp_path: Path, missing: str | None) -> None:
    folder = Path(shutil.copytree(small_folder('pi0'), tmp_path / 'c'))
    tensors = load_file(folder / 'model.safetensors')
    head, table = (
        lerobot_name(name, Family.PI0)
        for name in ('lm_head.weight', 'language_model.embed_tokens.weight')
    )
    tensors[head] = tensors[table].clone()
    save_file(
        {
            name: tensor
            for name, tensor in tensors.items()
            if missing is None or missing not in name
        },
        folder / 'model.safetensors',
    )
    language = load_checkpoint(folder)._language
    assert language._embedding.data_ptr() == language._head.data_ptr()
    assert torch.equal(language._embedding, tensors[table])


def _as_openpi(folder: Path, family: str) -> None:
    values = json.loads((folder / 'config.json').read_text())
    write_json(
        folder / 'config.json',
        {'sizes': values['sizes'], 'action_dim': 32, 'action_horizon': 16, 'precision': 'float32'},
    )
    for path in folder.glob('policy_*'):
        path.unlink()
    stats = {
        name: {
            'mean': [0.0] * size,
            'std': [1.0] * size,
            'q01': [-2.0] * size,
            'q99': [2.0] * size,
        }
        for name, size in (('state', 8), ('actions', 7))
    }
    (folder / 'assets' / 'robot').mkdir(parents=True)
    write_json(folder / 'assets' / 'robot' / 'norm_stats.json', {'norm_stats': stats})
    LAYOUTS['openpi'](folder)
    assert family in ('pi05', 'pi0')


@pytest.mark.parametrize(
    'family, mode, prompt',
    [
        ('pi05', NormMode.QUANTILES, PromptStyle.STATE),
        ('pi0', NormMode.MEAN_STD, PromptStyle.CLEAN_NEWLINE),
    ],
)
def test_an_openpi_folder(
    tmp_path: Path, family: str, mode: NormMode, prompt: PromptStyle
) -> None:
    folder = Path(shutil.copytree(small_folder(family), tmp_path / 'c'))
    _as_openpi(folder, family)
    model = load_checkpoint(folder)
    assert model.config.family.value == family
    assert (model.config.state_dim, model.config.action_dim) == (8, 7)
    processing = model.processing
    assert processing is not None and processing.images is ImageConvention.OPENPI
    assert processing.state.mode is mode and processing.prompt is prompt
    assert torch.equal(actions(model), actions(small_model(family)))
    chunk = processing.actions(np.ones((16, 32), np.float32))
    assert chunk == pytest.approx(2.0 if mode is NormMode.QUANTILES else 1.0, abs=1e-5)
    (folder / 'norm_stats.json').write_text('{}')
    with pytest.raises(ValueError, match='expected one norm_stats.json'):
        load_checkpoint(folder)


@pytest.mark.parametrize('name', ['pi05_L2_c3_h10', 'pi0_L2', 'smolvla_L4'])
def test_lerobots_own_config_means_the_real_sizes(shared: Path, tmp_path: Path, name: str) -> None:
    values = json.loads((shared / 'data/golden' / name / 'config.json').read_text())
    del values['sizes']
    if values['type'] == 'smolvla':
        values |= {'resize_imgs_with_padding': [512, 512], 'num_vlm_layers': 16}
    else:
        values['image_resolution'] = [224, 224]
    write_json(tmp_path / 'config.json', values)
    config = read_config(ConfigFile(tmp_path), {})
    real = preset(values['type'])
    assert (config.language, config.expert, config.vision, config.num_layers) == (
        real.language,
        real.expert,
        real.vision,
        real.num_layers,
    )
    assert config.vocab_size == real.vocab_size and config.action_dim == 7


def test_make_checkpoint_never_overwrites(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ['make-checkpoint', '--small', '--family', 'pi0', '--joints', '3']
    assert main([*arguments, str(tmp_path / 'c')]) == 0
    assert 'parameters, random' in capsys.readouterr().out
    assert main(['inspect', str(tmp_path / 'c')]) == 0
    assert '3 joints' in capsys.readouterr().out
    assert main([*arguments, str(tmp_path / 'c')]) == 1
    assert 'expected a new or empty folder' in capsys.readouterr().err
    assert main([*arguments, '--joints', '0', str(tmp_path / 'd')]) == 1
    assert 'action_dim: expected 1 to 32, got 0' in capsys.readouterr().err


def test_bench_prints_a_chunk_stage_by_stage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / 'figures.json'
    assert (
        main(['bench', 'stages', '--checkpoint', str(small_folder('pi05')), '--json', str(out)])
        == 0
    )
    figures = json.loads(out.read_text())
    assert list(figures['stages']) == ['ingest', 'vision', 'prefill', 'denoise']
    tokens, width, layers = 120, 64, 4
    products = 2 * tokens * layers * (width * (64 + 32 + 64) + 3 * width * 128)
    attention = 4 * tokens**2 * 64 * layers
    assert figures['stages']['prefill']['flop'] == products + attention
    assert '10 denoising steps' in capsys.readouterr().out
