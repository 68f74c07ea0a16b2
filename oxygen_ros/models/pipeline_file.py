# SPDX-License-Identifier: Apache-2.0
"""LeRobot's policy_preprocessor.json and policy_postprocessor.json, with their state files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ..types import FloatArray
from .config_file import ConfigFile, read_object
from .errors import CheckpointError
from .normalise import NormMode

PREPROCESSOR_NAME = 'policy_preprocessor.json'
POSTPROCESSOR_NAME = 'policy_postprocessor.json'

# Steps that move data about, and change no number that a model reads.
_NEUTRAL = ('to_batch_processor', 'device_processor')
PROMPT_STEPS = (
    'pi05_prepare_state_tokenizer_processor_step',
    'pi0_new_line_processor',
    'smolvla_new_line_processor',
)
_READ = (
    'rename_observations_processor',
    'normalizer_processor',
    'unnormalizer_processor',
    'tokenizer_processor',
    *PROMPT_STEPS,
)
_RELATIVE = ('relative_actions_processor', 'absolute_actions_processor')


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a pipeline."""

    name: str
    config: Mapping[str, Any]
    tensors: Mapping[str, FloatArray]  # of its state file

    def statistics(self, feature: str) -> dict[str, FloatArray]:
        """Return a feature's statistics by name."""
        prefix = feature + '.'
        return {
            name.removeprefix(prefix): value
            for name, value in self.tensors.items()
            if name.startswith(prefix)
        }

    def mode(self, kind: str) -> NormMode:
        """Return how a kind of feature (STATE, ACTION, VISUAL) is normalised.

        :raises CheckpointError: a mode that is not known.
        """
        name = (self.config.get('norm_map') or {}).get(kind, 'IDENTITY')
        if name not in [mode.value for mode in NormMode]:
            raise CheckpointError(
                f'{self.name}: norm_map of {kind}: expected one of '
                f'{", ".join(mode.value for mode in NormMode)}, got {name!r}'
            )
        return NormMode(name)


class Pipeline:
    """The steps of one file, all of them understood.

    :raises CheckpointError: no such file, an unknown step, relative actions, a state file that is
        missing or cut off.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        entries = read_object(path).get('steps')
        if not isinstance(entries, list):
            raise CheckpointError(f'{path}: steps: expected a list, got {entries!r}')
        self.steps = [self._step(entry) for entry in entries]

    def _step(self, entry: Any) -> Step:
        name = entry.get('registry_name') if isinstance(entry, dict) else None
        config = entry.get('config') or {} if isinstance(entry, dict) else {}
        if name not in (*_NEUTRAL, *_READ, *_RELATIVE):
            raise CheckpointError(
                f'{self.path}: steps: expected one of '
                f'{", ".join((*_READ, *_RELATIVE, *_NEUTRAL))}; got {name!r}, '
                'which is not known here and so cannot be left out'
            )
        if name in _RELATIVE and config.get('enabled'):
            raise CheckpointError(
                f'{self.path}: {name}: expected enabled: false, got true; '
                'actions relative to the state are not supported'
            )
        state_file = entry.get('state_file')
        return Step(name, config, {} if state_file is None else self._load(state_file))

    def _load(self, name: Any) -> dict[str, FloatArray]:
        if not isinstance(name, str) or Path(name).name != name:
            raise CheckpointError(f'{self.path}: state_file: expected a file name, got {name!r}')
        path = self.path.parent / name
        try:
            return {key: np.asarray(value, np.float32) for key, value in load_file(path).items()}
        except FileNotFoundError as error:
            raise CheckpointError(
                f'{self.path}: expected statistics in {name}, found no such file'
            ) from error
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f'{path}: expected a whole safetensors file, got: {error}'
            ) from error

    def find(self, *names: str) -> Step:
        """Return the one step with one of these names.

        :raises CheckpointError: none, or more than one.
        """
        found = [step for step in self.steps if step.name in names]
        if len(found) != 1:
            raise CheckpointError(
                f'{self.path}: steps: expected one of {", ".join(names)}, got {len(found)}'
            )
        return found[0]

    def renames(self) -> dict[str, str]:
        """Return the camera names of the training data by those of the model's inputs."""
        result: dict[str, str] = {}
        for step in self.steps:
            if step.name == 'rename_observations_processor':
                result |= step.config.get('rename_map') or {}
        return result


def check_features(step: Step, file: ConfigFile) -> None:
    """Compare a normaliser's features with the policy's.

    :raises CheckpointError: lists what differs.
    """
    declared = {
        **(file.values.get('input_features') or {}),
        **(file.values.get('output_features') or {}),
    }
    differences = []
    for name, feature in (step.config.get('features') or {}).items():
        known = declared.get(name)
        if known is None:
            differences.append(f'{name}: not in config.json')
        elif feature.get('type') != 'VISUAL' and feature.get('shape') != known.get('shape'):
            differences.append(
                f'{name}: expected shape {known.get("shape")}, got {feature.get("shape")}'
            )
    if differences:
        raise CheckpointError(
            f'{step.name}: features do not fit config.json: ' + '; '.join(differences)
        )
