# SPDX-License-Identifier: Apache-2.0
"""torch.compile changes speed only; where it cannot work, the model runs as without it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from oxygen_ros.bench.workbench import SyntheticSensors, Workbench
from oxygen_ros.engine.config import EngineConfig
from oxygen_ros.models.compiled import CompiledModel
from oxygen_ros.models.registry import create_model
from oxygen_ros.models.tiny import TinyModel
from oxygen_ros.models.tiny_config import TinyConfig


def chunks(model, num_chunks: int = 3) -> np.ndarray:
    """Return the first chunks that an engine makes on a model: [num_chunks, horizon, joints]."""
    bench = Workbench(model, EngineConfig(), SyntheticSensors(2, period_ns=40_000_000))
    bench.run_until(lambda: len(bench.chunks) >= num_chunks)
    return np.stack([chunk.values for chunk in bench.chunks[:num_chunks]])


@pytest.fixture(scope='module')
def model() -> TinyModel:
    return TinyModel(TinyConfig(num_cameras=2))


@pytest.mark.parametrize(
    'backend', ['eager', pytest.param('inductor', marks=pytest.mark.slow)]
)  # real compiling takes a minute
def test_a_compiled_model_gives_the_chunks_of_the_eager_one(model, backend):
    compiled = CompiledModel(model, backend)
    np.testing.assert_allclose(chunks(compiled), chunks(model), atol=1e-5)
    assert compiled.execution == 'compiled'
    assert (compiled.spec, compiled.checksum) == (model.spec, model.checksum)


@pytest.mark.slow
def test_new_prefixes_and_steps_are_not_compiled_again(model):
    compiled = CompiledModel(model, 'eager')
    chunks(compiled)
    with torch._dynamo.config.patch(error_on_recompile=True):
        chunks(compiled, 6)
    assert compiled.execution == 'compiled'


def test_where_compiling_fails_the_eager_passes_take_over_and_say_why(model, caplog):
    def broken(graph, inputs):
        raise RuntimeError('no compiler here')

    compiled = CompiledModel(model)
    compiled._encode = torch.compile(compiled._encode, backend=broken)
    compiled._denoise = torch.compile(compiled._denoise, backend=broken)
    torch._dynamo.reset()
    np.testing.assert_array_equal(chunks(compiled), chunks(model))
    assert 'no compiler here' in compiled.execution
    ours = [record for record in caplog.records if record.name.startswith('oxygen_ros')]
    assert len(ours) == 1


def test_it_is_an_option_of_every_model():
    assert isinstance(create_model('tiny', compile=True), CompiledModel)
    assert not isinstance(create_model('tiny'), CompiledModel)
