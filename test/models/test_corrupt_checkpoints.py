# SPDX-License-Identifier: Apache-2.0
"""One clear error for each way in which a checkpoint can be broken."""

from __future__ import annotations

from collections.abc import Callable
import json
from pathlib import Path
import shutil

from checkpoints import adapter_folder, small_folder, write_json
import pytest
from safetensors.torch import load_file, save_file
import torch
from torch import Tensor

from oxygen_ros.cli import main
from oxygen_ros.models.checkpoint import load_checkpoint
from oxygen_ros.models.errors import CheckpointError
from oxygen_ros.models.registry import create_model

WEIGHTS = 'model.safetensors'
STATISTICS = 'policy_preprocessor_step_3_normalizer_processor.safetensors'
HEAD = 'model.paligemma_with_expert.paligemma.lm_head.weight'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the small pi0.5 to break."""
    return Path(shutil.copytree(small_folder('pi05'), tmp_path / 'pi05'))


def edit_json(path: Path, change: Callable[[dict], None]) -> None:
    values = json.loads(path.read_text())
    change(values)
    write_json(path, values)


def edit_tensors(path: Path, change: Callable[[dict[str, Tensor]], None]) -> None:
    tensors = load_file(path)
    change(tensors)
    save_file({name: tensor.clone() for name, tensor in tensors.items()}, path)


def _truncate(folder: Path) -> None:
    data = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(data[: len(data) // 2])


def _misfits(folder: Path) -> None:
    def change(tensors: dict[str, Tensor]) -> None:
        del tensors['model.action_in_proj.bias']
        tensors['model.action_out_proj.bias'] = torch.zeros(5)
        tensors['model.surprise'] = torch.zeros(1)

    edit_tensors(folder / WEIGHTS, change)


def _nan(folder: Path) -> None:
    def change(tensors: dict[str, Tensor]) -> None:
        tensors['model.time_mlp_in.weight'][3, 4] = float('nan')

    edit_tensors(folder / WEIGHTS, change)


def _both_names(folder: Path) -> None:
    def change(tensors: dict[str, Tensor]) -> None:
        tensors['paligemma_with_expert.paligemma.lm_head.weight'] = tensors[HEAD]

    edit_tensors(folder / WEIGHTS, change)


def _no_quantile(folder: Path) -> None:
    edit_tensors(folder / STATISTICS, lambda tensors: tensors.pop('observation.state.q99'))


def _nan_statistics(folder: Path) -> None:
    edit_tensors(
        folder / STATISTICS, lambda tensors: tensors['observation.state.q01'].fill_(float('nan'))
    )


def _camera_key(folder: Path) -> None:
    edit_json(
        folder / 'config.json',
        lambda values: values['input_features'].pop('observation.images.camera_1'),
    )


def _unknown_step(folder: Path) -> None:
    edit_json(
        folder / 'policy_preprocessor.json',
        lambda values: values['steps'].append({'registry_name': 'colour_jitter', 'config': {}}),
    )


def _relative(folder: Path) -> None:
    edit_json(
        folder / 'policy_preprocessor.json',
        lambda values: values['steps'].append(
            {'registry_name': 'relative_actions_processor', 'config': {'enabled': True}}
        ),
    )


def _family(folder: Path) -> None:
    edit_json(folder / 'config.json', lambda values: values.update(type='act'))


def _horizon(folder: Path) -> None:
    edit_json(folder / 'config.json', lambda values: values.update(chunk_size=0))


def _remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _garbage(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text('{') and None


BREAKS: dict[str, tuple[Callable[[Path], None], str]] = {
    'truncated': (_truncate, 'expected a whole safetensors file'),
    'misfits': (
        _misfits,
        r'3 misfits: .*missing action_in_proj.bias \[48\]'
        r'|3 misfits: .*action_out_proj.bias: expected shape \[32\], got \[5\]',
    ),
    'nan': (_nan, 'time_mlp_in.weight: expected finite numbers, got NaN'),
    'two names': (_both_names, 'expected one lm_head.weight, got'),
    'no weights': (_remove(WEIGHTS), 'expected model.safetensors or'),
    'no config': (_remove('config.json'), 'expected a readable JSON file'),
    'no tokenizer': (_remove('tokenizer.json'), 'expected tokenizer.json'),
    'no processor': (_remove('policy_preprocessor.json'), 'expected a readable JSON file'),
    'no statistics': (_remove(STATISTICS), 'found no such file'),
    'no quantile': (_no_quantile, 'observation.state: expected q99 for QUANTILES, found max'),
    'nan statistics': (_nan_statistics, 'expected finite q01'),
    'camera key': (_camera_key, 'observation.images.camera_1: not in config.json'),
    'unknown step': (_unknown_step, "got 'colour_jitter'"),
    'relative actions': (_relative, 'relative to the state are not supported'),
    'family': (_family, "type: expected pi05, pi0 or smolvla, got 'act'"),
    'horizon': (_horizon, 'chunk_size: expected a positive integer, got 0'),
    'bad json': (_garbage('config.json'), 'expected a readable JSON file'),
    'bad tokenizer': (_garbage('tokenizer.json'), 'expected a tokenizer file'),
}


@pytest.mark.parametrize('name', BREAKS)
def test_each_break_gives_one_clear_error(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    harm, message = BREAKS[name]
    harm(folder)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(folder)
    assert '\n' not in str(caught.value)
    assert main(['inspect', str(folder)]) == 1
    output = capsys.readouterr()
    assert 'Traceback' not in output.err + output.out


@pytest.mark.parametrize(
    'options, message',
    [
        ({'num_joints': 6}, 'expected 7 for the state, got 6; joints: expected 7 for the action'),
        ({'cameras': ('camera_0', 'wrist')}, 'camera wrist: expected one of camera_0, camera_1'),
        ({'cameras': ('camera_1', 'camera_0')}, "expected the model's order camera_0, camera_1"),
        ({'cameras': ('a',), 'camera_map': ('b=camera_0',)}, 'camera_map: expected a camera of a'),
        ({'camera_map': ('front',)}, "expected 'camera=key' pairs"),
        ({'num_cameras': 4}, 'num_cameras: expected at most 3, got 4'),
    ],
)
def test_another_robot_is_refused_with_the_list(options: dict[str, object], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        create_model(str(small_folder('pi05')), device='cpu', **options)


def test_a_map_binds_other_names() -> None:
    model = create_model(
        str(small_folder('pi05')),
        device='cpu',
        num_cameras=2,
        cameras=('top', 'camera_2'),
        camera_map=('top=camera_1',),
    )
    assert model.spec.num_cameras == 3


@pytest.mark.parametrize(
    'change, message',
    [
        ({'peft_type': 'IA3'}, "peft_type: expected LORA, got 'IA3'"),
        ({'use_dora': True}, 'use_dora: expected none'),
        ({'r': 8}, r'expected one of 4 layers and shape \[8, 64\], got \[4, 64\]'),
        ({'bias': 'all'}, "bias: expected none, got 'all'"),
    ],
)
def test_other_adapters_are_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    folder = Path(shutil.copytree(adapter_folder(), tmp_path / 'adapter'))
    edit_json(folder / 'adapter_config.json', lambda values: values.update(change))
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(small_folder('pi05'), adapter=folder)


def test_an_adapter_of_something_else_is_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(adapter_folder(), tmp_path / 'adapter'))
    edit_tensors(
        folder / 'adapter_model.safetensors',
        lambda tensors: tensors.update(
            {'base_model.model.vision_tower.encoder.lora_A.weight': torch.zeros(4, 4)}
        ),
    )
    with pytest.raises(CheckpointError, match='expected a projection of a language layer'):
        load_checkpoint(small_folder('pi05'), adapter=folder)
