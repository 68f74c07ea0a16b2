# SPDX-License-Identifier: Apache-2.0
"""Accounting of KV blocks: who may use which, in counts alone, with no tensor in sight.

| blocks                        | taken as                | by                           |
| ----------------------------- | ----------------------- | ---------------------------- |
| first num_slots * slot_blocks | slots of `slot_blocks`  | a prefix: owned, then shared |
| the rest                      | runs of `action_stride` | an action: whole, contiguous |
|                               | single blocks of a run  | text                         |

Text draws from runs that hold text already and opens a free run only while more than the reserve
are free; actions may take any free run. So the border between the two moves with demand, an action
run is always there up to the reserve, and nothing fragments: a run whose text blocks have all come
back is a free run again. Every operation is O(1).
"""

from __future__ import annotations

from ..errors import PoolError
from .prefix_slots import PrefixSlots


class BlockPool(PrefixSlots):
    """Free, owned and shared counts of one pool: its slots, and the runs after them.

    Only the thread that owns the engine calls it.

    :param reserved_runs: free runs that text never opens.
    :raises ValueError: names the field, what was expected and what came.
    """

    def __init__(
        self,
        num_slots: int,
        slot_blocks: int,
        num_runs: int,
        action_stride: int,
        reserved_runs: int,
    ) -> None:
        super().__init__(num_slots, slot_blocks)
        for name, value in (('num_runs', num_runs), ('action_stride', action_stride)):
            if value < 1:
                raise ValueError(f'{name}: expected at least 1, got {value}')
        if not 0 <= reserved_runs <= num_runs:
            raise ValueError(f'reserved_runs: expected 0 to {num_runs}, got {reserved_runs}')
        self.num_runs = num_runs
        self.action_stride = action_stride
        self.reserved_runs = reserved_runs
        self.first_run_block = num_slots * slot_blocks
        self.num_blocks = self.first_run_block + num_runs * action_stride
        self._free_runs = list(range(num_runs - 1, -1, -1))
        self._run_of_action = [False] * num_runs
        # Text's runs: free blocks of each, and the runs that have one, as a doubly linked list.
        self._text_free: list[list[int]] = [[] for _ in range(num_runs)]
        self._text_used = [0] * num_runs  # blocks of the run that text holds
        self._block_used = bytearray(num_runs * action_stride)
        self._open_next = [-1] * num_runs
        self._open_prev = [-1] * num_runs
        self._open_head = -1
        self._num_text = 0
        self._num_open_free = 0  # free blocks of runs opened by text
        self._num_action_runs = 0

    # Counts.

    @property
    def num_shared(self) -> int:
        """Blocks of registered prefixes."""
        return self._num_shared_slots * self.slot_blocks

    @property
    def num_owned(self) -> int:
        """Blocks of one task, or of a prefix being built."""
        return (
            self._num_owned_slots * self.slot_blocks
            + self._num_action_runs * self.action_stride
            + self._num_text
        )

    @property
    def num_free(self) -> int:
        """Blocks that nobody holds."""
        return (
            len(self._free_slots) * self.slot_blocks
            + len(self._free_runs) * self.action_stride
            + self._num_open_free
        )

    @property
    def num_text(self) -> int:
        """Blocks that text holds."""
        return self._num_text

    @property
    def num_action_runs(self) -> int:
        """Runs that actions hold."""
        return self._num_action_runs

    @property
    def num_free_runs(self) -> int:
        """Runs that neither an action nor text holds a block of."""
        return len(self._free_runs)

    @property
    def max_text_blocks(self) -> int:
        """Blocks that text could hold at most, with no more action runs than the reserve."""
        return (self.num_runs - self.reserved_runs) * self.action_stride

    @property
    def num_available_text(self) -> int:
        """Blocks that text could take now."""
        spare = len(self._free_runs) - self._reserve_left()
        return self._num_open_free + max(0, spare) * self.action_stride

    def _reserve_left(self) -> int:
        """Free runs that must stay: the reserve less what actions hold already."""
        return max(0, self.reserved_runs - self._num_action_runs)

    def is_shared(self, block: int) -> bool:
        """Whether a block belongs to a registered prefix."""
        return 0 <= block < self.first_run_block and self.refs(block // self.slot_blocks) > 0

    def is_owned(self, block: int) -> bool:
        """Whether one task, or the builder of a prefix, holds a block."""
        index = block - self.first_run_block
        if index < 0:
            return block >= 0 and self._slot_owned[block // self.slot_blocks]
        return block < self.num_blocks and (
            self._run_of_action[index // self.action_stride] or self._block_used[index] == 1
        )

    # Action runs.

    def take_run(self) -> int | None:
        """Take a whole run; return its first block, or None when no run is free."""
        if not self._free_runs:
            return None
        run = self._free_runs.pop()
        self._run_of_action[run] = True
        self._num_action_runs += 1
        return self.first_run_block + run * self.action_stride

    def free_run(self, first_block: int) -> None:
        """Give back a run.

        :raises PoolError: no action holds a run that begins there.
        """
        run, offset = divmod(first_block - self.first_run_block, self.action_stride)
        if offset or not 0 <= run < self.num_runs or not self._run_of_action[run]:
            raise PoolError(
                f'block {first_block}: expected the first block of an action run, got another'
            )
        self._run_of_action[run] = False
        self._num_action_runs -= 1
        self._free_runs.append(run)

    # Text blocks.

    def take_block(self) -> int | None:
        """Take one block; None: none is free above the actions' reserve."""
        run = self._open_head
        if run < 0:
            if len(self._free_runs) <= self._reserve_left():
                return None
            run = self._free_runs.pop()
            first = self.first_run_block + run * self.action_stride
            self._text_free[run] = list(range(first + self.action_stride - 1, first - 1, -1))
            self._num_open_free += self.action_stride
            self._link(run)
        block = self._text_free[run].pop()
        self._text_used[run] += 1
        self._block_used[block - self.first_run_block] = 1
        self._num_text += 1
        self._num_open_free -= 1
        if not self._text_free[run]:
            self._unlink(run)
        return block

    def free_block(self, block: int) -> None:
        """Give back one text block; the last one of a run makes the run free for actions too.

        :raises PoolError: text does not hold the block.
        """
        index = block - self.first_run_block
        if not 0 <= index < len(self._block_used) or not self._block_used[index]:
            raise PoolError(f'block {block}: expected a text block in use, got another')
        run = index // self.action_stride
        self._block_used[index] = 0
        self._num_text -= 1
        self._text_used[run] -= 1
        was_full = not self._text_free[run]
        if self._text_used[run]:
            self._text_free[run].append(block)
            self._num_open_free += 1
            if was_full:
                self._link(run)
            return
        if not was_full:
            self._unlink(run)
        self._num_open_free -= len(self._text_free[run])
        self._text_free[run] = []
        self._free_runs.append(run)

    def _link(self, run: int) -> None:
        self._open_prev[run] = -1
        self._open_next[run] = self._open_head
        if self._open_head >= 0:
            self._open_prev[self._open_head] = run
        self._open_head = run

    def _unlink(self, run: int) -> None:
        before, after = self._open_prev[run], self._open_next[run]
        if before >= 0:
            self._open_next[before] = after
        else:
            self._open_head = after
        if after >= 0:
            self._open_prev[after] = before

    def check(self) -> None:
        """Assert the invariants; O(blocks), for idle time and tests."""
        super().check()
        assert self.num_free + self.num_owned + self.num_shared == self.num_blocks
        assert sum(self._block_used) == self._num_text == sum(self._text_used)
        assert sum(self._run_of_action) == self._num_action_runs
        # An action can still be given what is left of the reserve.
        assert len(self._free_runs) >= self._reserve_left()
        opened = [run for run, used in enumerate(self._text_used) if used]
        in_action = [run for run, taken in enumerate(self._run_of_action) if taken]
        # Each run is free, an action's, or text's.
        assert sorted([*self._free_runs, *in_action, *opened]) == list(range(self.num_runs))
        assert sum(map(len, self._text_free)) == self._num_open_free
        assert len(opened) * self.action_stride == self._num_text + self._num_open_free
        # The linked list holds exactly the open runs with a free block.
        linked: list[int] = []
        run = self._open_head
        while run >= 0 and len(linked) <= len(opened):
            linked.append(run)
            run = self._open_next[run]
        assert sorted(linked) == [run for run in opened if self._text_free[run]]
