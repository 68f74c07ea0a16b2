# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs around the passes that launch most kernels, with the eager ones behind them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
import dataclasses
import logging
from typing import Any, cast, Protocol

import torch
from torch import Tensor

from ..engine.attention import static_plan
from ..engine.model import ActionPass, Attend, VLAModel
from .layers import RopeRows

_LOG = logging.getLogger(__name__)
# Each takes some memory of the device and the host; what comes after them runs eagerly.
_MAX_GRAPHS = 2048


class _FlowPass(ActionPass, Protocol):
    actions: Tensor
    velocity: Tensor | None


Record = Callable[[Callable[[], object]], Callable[[], None]]
"""`record(function) -> replay`: run a function once, and return what repeats its kernels on the
same addresses.
"""


def cuda_record(device: torch.device) -> Record:
    """Return what captures CUDA graphs, all of them in one pool of memory.

    They may share it because they run one after another and no result stays there.
    """
    stream, pool = torch.cuda.Stream(device), torch.cuda.graph_pool_handle()

    def record(function: Callable[[], object]) -> Callable[[], None]:
        graph = torch.cuda.CUDAGraph()
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            function()  # what loads kernels at its first call may not be captured
            # Errors of this thread's calls alone: no other one works on the device.
            graph.capture_begin(pool, capture_error_mode='thread_local')
            try:
                function()
            finally:
                graph.capture_end()
        torch.cuda.current_stream(device).wait_stream(stream)
        return graph.replay

    return record


class _Place:
    """Where passes of one kind, which look alike, find their inputs and leave their output."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        self.inputs = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in inputs]
        self.output: Tensor | None = None

    def fill(self, inputs: Sequence[Tensor]) -> None:
        """Bring the inputs of the next pass here."""
        for own, given in zip(self.inputs, inputs, strict=True):
            own.copy_(given)

    def keep(self, result: Tensor) -> None:
        """Bring a pass's result here."""
        if self.output is None:
            self.output = torch.empty_like(result)
        self.output.copy_(result)

    def read(self) -> Tensor:
        """Return a copy of the output: another pass of the kind may run before it is read."""
        assert self.output is not None
        return self.output.clone()


class GraphedModel:
    """A `VLAModel` whose vision tower, language layers and denoising steps are CUDA graphs.

    A graph is captured when its shape comes for the first time, which takes a few times as long
    as the eager pass: for actions and the usual decode steps while warming up. Shapes alone
    decide, for the `static` attention backend reads places and lengths from the device; what it
    has no static plan for runs eagerly, as a text's prompt does. SmolVLA's denoising steps do too:
    its projected prefix has no fixed place. Results are those of the eager passes on that backend.
    Graphs belong to one engine's memory: a second engine needs another of these around the same
    model. That may be a compiled one: what its passes launch is captured. Where there is no CUDA
    device, or capturing fails, the passes take over as they are for good and `execution` says why.
    """

    def __init__(self, model: VLAModel, record: Record | None = None) -> None:
        """:param record: what takes passes down; None: CUDA graphs."""
        self._model = model
        self._replays: dict[Hashable, Callable[[], None]] = {}
        self._places: dict[Hashable, _Place] = {}
        self._record = record
        if record is None and model.device.type != 'cuda':
            self._why_not = f'CUDA graphs need a CUDA device, got {model.device}'
            return
        self._why_not = ''
        self.attention_backend = 'static'  # the engine takes it in place of its own
        self._record = cuda_record(model.device) if record is None else record

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    @property
    def execution(self) -> str:
        """How passes run: that of the model behind, and graphs or why there are none."""
        inner: str = getattr(self._model, 'execution', 'eager')
        if self._why_not:
            return f'{inner}, since {self._why_not}'
        return 'cuda graphs' if inner == 'eager' else f'cuda graphs of passes {inner}'

    @property
    def num_graphs(self) -> int:
        """Graphs captured so far."""
        return len(self._replays)

    @torch.inference_mode()
    def encode_image(self, image: Tensor) -> Tensor:
        """Run the vision tower: [3, height, width] -> [tokens_per_image, width]."""
        key = ('vision', image.shape)
        return self._run(key, key, [image], self._model.encode_image)

    @torch.inference_mode()
    def run_layer(self, layer: int, hidden: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """Run one language layer of a prefix; see `VLAModel.run_layer`."""
        return self._layer(self._model.run_layer, layer, hidden, positions, attend)

    @torch.inference_mode()
    def run_text_layer(
        self, layer: int, hidden: Tensor, positions: Tensor, attend: Attend
    ) -> Tensor:
        """Run one language layer of text; see `VLAModel.run_text_layer`."""
        return self._layer(self._model.run_text_layer, layer, hidden, positions, attend)

    def _layer(
        self,
        run: Callable[..., Tensor],
        layer: int,
        hidden: Tensor,
        positions: Tensor,
        attend: Attend,
    ) -> Tensor:
        plan = static_plan(attend)
        if plan is None:
            return run(layer, hidden, positions, attend)
        plan.load()
        kind = (run.__name__, plan.buffers)
        return self._run(
            (*kind, layer), kind, [hidden, positions], lambda *own: run(layer, *own, attend)
        )

    @torch.inference_mode()
    def denoise_step(self, action: ActionPass, step: int, attend: Attend) -> None:
        """Advance the pass by one Euler step."""
        plan = static_plan(attend)
        if plan is None or getattr(action, 'shared', None) is not None:
            self._model.denoise_step(action, step, attend)
            return
        plan.load()
        flow = cast(_FlowPass, action)

        def run(*own: Tensor) -> Tensor:
            inner = _with_tensors(flow, own)
            self._model.denoise_step(inner, step, attend)
            assert inner.velocity is not None
            return torch.stack((inner.actions, inner.velocity))

        kind = ('denoise', plan.buffers)
        both = self._run((*kind, step), kind, _tensors(flow), run)
        flow.actions.copy_(both[0])
        flow.velocity = both[1]

    def _run(
        self,
        key: Hashable,
        kind: Hashable,
        inputs: Sequence[Tensor],
        function: Callable[..., Tensor],
    ) -> Tensor:
        """Run a pass by its graph, or eagerly while it is captured.

        :param kind: of passes whose inputs and results look alike; key: that pass alone.
        """
        replay = self._replays.get(key)
        if replay is None and (self._record is None or len(self._replays) >= _MAX_GRAPHS):
            return function(*inputs)
        place = self._places.get(kind)
        if place is None:
            place = self._places[kind] = _Place(inputs)
        place.fill(inputs)
        if replay is not None:
            replay()
            return place.read()
        assert self._record is not None
        try:
            self._replays[key] = self._record(lambda: place.keep(function(*place.inputs)))
            return place.read()
        except Exception as error:  # noqa: B902, BLE001 whatever it is, there is another way
            self._fall_back(error)
            return function(*inputs)

    def _fall_back(self, error: Exception) -> None:
        self._record = None
        self._replays.clear()
        self._places.clear()
        reason = ' '.join(str(error).split())[:200]
        self._why_not = f'capturing failed: {type(error).__name__}: {reason}'
        _LOG.warning('model: %s', self.execution)


def _tensors(action: Any) -> list[Tensor]:
    """Return all tensors that a denoising step reads of a pass, in order."""
    found: list[Tensor] = []
    for item in dataclasses.fields(action):
        value = getattr(action, item.name)
        if item.name != 'velocity' and isinstance(value, (Tensor, RopeRows)):
            found += value if isinstance(value, RopeRows) else [value]
    return found


def _with_tensors(action: Any, tensors: Sequence[Tensor]) -> Any:
    """Return a pass with others in the place of its tensors."""
    left = iter(tensors)
    changed: dict[str, object] = {}
    for item in dataclasses.fields(action):
        value = getattr(action, item.name)
        if item.name == 'velocity':
            continue
        if isinstance(value, RopeRows):
            changed[item.name] = RopeRows(next(left), next(left))
        elif isinstance(value, Tensor):
            changed[item.name] = next(left)
    return dataclasses.replace(action, **changed)
