# SPDX-License-Identifier: Apache-2.0
"""Language alone in a process of its own: what a second copy of the model would do beside the
action's.
"""

from __future__ import annotations

import json
from pathlib import Path
import signal
import sys
import time

import torch

from ..engine.config import EngineConfig
from ..engine.scheduling.cost_model import OnlineCostModel
from ..runtime.work_clock import work_clock
from .loads import DIALOGUE_TOKENS
from .subject import checkpoint_subject, TINY
from .workbench import MS, SyntheticSensors, Workbench

NUM_DIALOGUES = 4


def main() -> None:
    """Encode a frame every 100 ms and keep four dialogues going until told to end; then write the
    figures to the file that is the first argument. The second, if any, is a checkpoint.
    """
    torch.set_num_threads(1)
    running = True

    def stop(*_: object) -> None:
        nonlocal running
        running = False

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    subject = checkpoint_subject(Path(sys.argv[2])) if len(sys.argv) > 2 else TINY
    model = subject.create()
    bench = Workbench(
        model,
        EngineConfig(),
        SyntheticSensors(model.spec.num_cameras, model.spec.action_dim, period_ns=100 * MS),
        work_clock(model.device),
        OnlineCostModel(),
    )
    start_ns = time.monotonic_ns()
    while running:
        bench.engine.action.replace(None)  # no actions here
        while bench.engine.text.num_live < NUM_DIALOGUES:
            bench.ask(max_tokens=DIALOGUE_TOKENS)
        now_ns = bench.clock.now_ns()
        bench.engine.run_cycle(now_ns, now_ns + 100 * MS)
        bench.events.clear()
    seconds = (time.monotonic_ns() - start_ns) * 1e-9
    Path(sys.argv[1]).write_text(
        json.dumps(
            {
                'tokens_per_s': bench.engine.counters.text_tokens / seconds,
                'cpu_s': time.process_time(),
                'seconds': seconds,
            }
        )
    )


if __name__ == '__main__':
    main()
