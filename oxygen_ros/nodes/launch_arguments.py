# SPDX-License-Identifier: Apache-2.0
"""What the launch files make of their arguments; knows no launch, so it can be tested alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ..errors import OxygenError

_TRUE, _FALSE = ('true', '1', 'yes', 'on'), ('false', '0', 'no', 'off')


class LaunchArgumentError(OxygenError):
    """A launch argument cannot be used."""


def boolean(given: Mapping[str, str], name: str) -> bool:
    """Read true or false.

    :raises LaunchArgumentError: it is neither.
    """
    text = given[name].lower()
    if text not in (*_TRUE, *_FALSE):
        raise LaunchArgumentError(f'{name}: expected true or false, got {given[name]!r}')
    return text in _TRUE


def number(given: Mapping[str, str], name: str, low: float) -> float:
    """Read a number that is not below a bound.

    :raises LaunchArgumentError: it is none, or below.
    """
    try:
        value = float(given[name])
    except ValueError:
        value = float('nan')
    if not value >= low:
        raise LaunchArgumentError(
            f'{name}: expected a number of at least {low:g}, got {given[name]!r}'
        )
    return value


def parameter_files(share: str | Path, robot: str, params_file: str) -> list[str]:
    """Return the parameter files in their order: defaults, robot, the user's own.

    launch only warns of a file that is missing, and a robot would run on defaults.

    :param share: the package's installed folder.
    :param robot: name of a file in config/robots without its ending, or a path; empty: none.
    :param params_file: a path; empty: none.
    :raises LaunchArgumentError: a file is missing.
    """
    config = Path(share) / 'config'
    files = [config / 'oxygen.yaml']
    if robot:
        folder = config / 'robots'
        is_path = '/' in robot or robot.endswith(('.yaml', '.yml'))
        path = Path(robot).expanduser() if is_path else folder / f'{robot}.yaml'
        if not path.is_file():
            known = ', '.join(sorted(file.stem for file in folder.glob('*.yaml')))
            raise LaunchArgumentError(
                f'robot: expected one of {known}, or a parameter file, got {robot!r}'
            )
        files.append(path)
    if params_file:
        path = Path(params_file).expanduser()
        if not path.is_file():
            raise LaunchArgumentError(f'params_file: expected a file, got {params_file!r}')
        files.append(path)
    return [str(file.resolve()) for file in files]


def cameras(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Read the argument `cameras`: names separated by commas, each with a topic or without.

    :param text: such as `front=/d435/color/image_raw,wrist`; empty: as the parameter files say.
    :return: the names, and the remappings that bring images from those topics.
    :raises LaunchArgumentError: a name is missing or comes twice.
    """
    names: list[str] = []
    remappings: list[tuple[str, str]] = []
    for part in filter(None, (part.strip() for part in text.split(','))):
        name, separator, topic = (piece.strip() for piece in part.partition('='))
        if not name or name in names or (separator and not topic):
            raise LaunchArgumentError(
                f'cameras: expected different names or name=topic pairs, got {text!r}'
            )
        names.append(name)
        if topic:
            # image_transport derives the name of the compressed topic from that of the raw one.
            remappings += [
                (f'{name}/image_raw', topic),
                (f'{name}/image_raw/compressed', f'{topic}/compressed'),
            ]
    return names, remappings


def camera_overrides(names: list[str], files: list[str]) -> dict[str, list[str]]:
    """Return the parameters that name the cameras; optional ones stay so where they are left.

    :param names: of the argument `cameras`; empty: as the parameter files say.
    :param files: that `parameter_files` returned.
    """
    if not names:
        return {}
    optional = [name for name in parameters_of(files)['optional_cameras'] if name in names]
    return {'cameras': names, 'optional_cameras': optional or ['']}


def choose(given: Mapping[str, str], name: str, *choices: str) -> str:
    """Read one of a few words.

    :raises LaunchArgumentError: it is none of them.
    """
    if given[name] not in choices:
        raise LaunchArgumentError(f'{name}: expected {" or ".join(choices)}, got {given[name]!r}')
    return given[name]


def model_overrides(given: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of `model` and `checkpoint`, of which at most one is given.

    :raises LaunchArgumentError: both are, or the checkpoint is no folder.
    """
    model, checkpoint = given['model'], given['checkpoint']
    if model and checkpoint:
        raise LaunchArgumentError(
            f'model: expected without checkpoint, got {model!r} and {checkpoint!r}'
        )
    if checkpoint:
        folder = Path(checkpoint).expanduser()
        if not folder.is_dir():
            raise LaunchArgumentError(f'checkpoint: expected a folder, got {checkpoint!r}')
        return {'model.checkpoint': str(folder.resolve())}
    return {'model.name': model, 'model.checkpoint': ''} if model else {}


def parameters_of(files: list[str]) -> dict[str, Any]:
    """Return the parameters that files set for whatever node, later files over earlier ones.

    :param files: that `parameter_files` returned.
    :raises LaunchArgumentError: a file is no parameter file.
    """
    found: dict[str, Any] = {}
    for file in files:
        try:
            content = yaml.safe_load(Path(file).read_text(encoding='utf-8'))
            for node in content.values():
                found.update(node['ros__parameters'])
        except (yaml.YAMLError, AttributeError, KeyError, TypeError, OSError) as error:
            problem = ' '.join(f'{type(error).__name__}: {error}'.split())
            raise LaunchArgumentError(
                f'{file}: expected a parameter file, got {problem}'
            ) from error
    return found
