# SPDX-License-Identifier: Apache-2.0
"""Which model a robot runs, and with which options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..models.options import MODEL_NAMES, ModelOptions
from ..setting import check, part, refusal, setting


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A model by name, or the folder of a checkpoint, with its options.

    A checkpoint's contents are compared with cameras and joints when the model is made.
    """

    PREFIX: ClassVar[str] = 'model'

    name: str = setting('tiny', 'Model by name, if there is no checkpoint', choices=MODEL_NAMES)
    checkpoint: str = setting(
        '',
        'Folder of a pi0.5, pi0 or SmolVLA checkpoint; empty: a model by name. It must fit '
        'cameras and joints, and defines sizes, scope and steps itself',
    )
    options: ModelOptions = part(ModelOptions)

    def __post_init__(self) -> None:
        check(self)
        for owner, name in ((self, 'checkpoint'), (self.options, 'adapter')):
            path = getattr(owner, name)
            if self.checkpoint and path and not Path(path).is_dir():
                raise refusal(owner, name, 'a folder')
        self.options.check_for(is_checkpoint=bool(self.checkpoint))

    @property
    def source(self) -> str:
        """What `create_model` takes."""
        return self.checkpoint or self.name
