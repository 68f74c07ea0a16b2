# SPDX-License-Identifier: Apache-2.0
"""`torch.compile` around the two passes that run most, with the eager ones behind them."""

from __future__ import annotations

from collections.abc import Callable
import inspect
import logging
from typing import Any, cast

import torch
from torch import Tensor

from ..engine.model import ActionPass, Attend, VLAModel

_LOG = logging.getLogger(__name__)
# Each denoising step is a version of its own, and so is each slot of the prefix.
_MAX_VERSIONS = 64


class CompiledModel:
    """A `VLAModel` whose vision tower and denoising step are compiled; all else is the model's.

    The first call of each compiles, which takes up to minutes: warm up before the robot moves.
    When compiling fails, as where there is no C++ compiler, the eager pass takes over for good and
    `execution` says why. Results differ from the eager ones in the last digits.
    """

    def __init__(self, model: VLAModel, backend: str = 'inductor') -> None:
        """:param backend: of torch.compile, by name."""
        self._model = model
        self._attend: Attend | None = None  # of the pass under way
        self.execution = 'compiled'
        # Without this the compiler would trace the engine's paging, and once for each prefix.
        self._stable_attend = torch.compiler.disable(self._forward_attend)
        self._encode = self._compile(model.encode_image, backend)
        self._denoise = self._compile(model.denoise_step, backend)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def encode_image(self, image: Tensor) -> Tensor:
        """Run the vision tower: [3, height, width] -> [tokens_per_image, width]."""
        if self.execution == 'compiled':
            try:
                with torch.inference_mode():
                    return cast(Tensor, self._encode(image))
            except Exception as error:  # noqa: B902, BLE001 whatever it is, there is another way
                self._fall_back(error)
        return self._model.encode_image(image)

    def denoise_step(self, action: ActionPass, step: int, attend: Attend) -> None:
        """Advance the pass by one Euler step.

        The actions change last and K/V rows are written again: what failed half way can be done
        once more.
        """
        if self.execution == 'compiled':
            self._attend = attend
            try:
                with torch.inference_mode():
                    self._denoise(action, step, self._stable_attend)
                return
            except Exception as error:  # noqa: B902, BLE001 as above
                self._fall_back(error)
        self._model.denoise_step(action, step, attend)

    def _forward_attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        assert self._attend is not None
        return self._attend(layer, q, k, v)

    def _fall_back(self, error: Exception) -> None:
        reason = ' '.join(str(error).split())[:200]
        self.execution = f'eager, since compiling failed: {type(error).__name__}: {reason}'
        _LOG.warning('model: %s', self.execution)

    def _compile(self, method: Callable[..., Any], backend: str) -> Callable[..., Any]:
        # The models' own inference_mode decorators cannot be traced; ours stands outside instead.
        function = inspect.unwrap(method).__get__(self._model)
        torch._dynamo.config.recompile_limit = max(
            torch._dynamo.config.recompile_limit, _MAX_VERSIONS
        )
        return torch.compile(function, backend=backend, dynamic=False)
