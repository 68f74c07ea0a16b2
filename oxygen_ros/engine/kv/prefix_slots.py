# SPDX-License-Identifier: Apache-2.0
"""Accounting of prefix slots: fixed-size, contiguous, counted by reference once they are shared.

| state  | from                      | to                              | who may write |
| ------ | ------------------------- | ------------------------------- | ------------- |
| free   | start, drop_slot, release | take_slot                       | nobody        |
| owned  | take_slot                 | share_slot, drop_slot           | its builder   |
| shared | share_slot                | the last reference is released  | nobody        |
"""

from __future__ import annotations

from ..errors import PoolError


class PrefixSlots:
    """The slots of one pool; slot i holds blocks i * slot_blocks .. (i + 1) * slot_blocks - 1.

    Every operation is O(1). Only the thread that owns the engine calls it.

    :raises ValueError: names the field, what was expected and what came.
    """

    def __init__(self, num_slots: int, slot_blocks: int) -> None:
        for name, value in (('num_slots', num_slots), ('slot_blocks', slot_blocks)):
            if value < 1:
                raise ValueError(f'{name}: expected at least 1, got {value}')
        self.num_slots = num_slots
        self.slot_blocks = slot_blocks
        self._free_slots = list(range(num_slots - 1, -1, -1))
        self._slot_refs = [0] * num_slots  # 0: not shared
        self._slot_owned = [False] * num_slots  # taken and not yet shared
        self._num_owned_slots = 0
        self._num_shared_slots = 0

    @property
    def num_free_slots(self) -> int:
        """Prefix slots that nobody holds."""
        return len(self._free_slots)

    def slot_block(self, slot: int) -> int:
        """Return the first block of a slot."""
        return slot * self.slot_blocks

    def refs(self, slot: int) -> int:
        """References to a slot; 0: not shared."""
        return self._slot_refs[slot]

    def take_slot(self) -> int | None:
        """Take a slot to build a prefix in; None: all are held."""
        if not self._free_slots:
            return None
        slot = self._free_slots.pop()
        self._slot_owned[slot] = True
        self._num_owned_slots += 1
        return slot

    def drop_slot(self, slot: int) -> None:
        """Give up a prefix that was not finished.

        :raises PoolError: the slot is not being built.
        """
        self._disown(slot)
        self._free_slots.append(slot)

    def share_slot(self, slot: int) -> None:
        """Make a finished prefix immutable, with one reference.

        :raises PoolError: the slot is not being built.
        """
        self._disown(slot)
        self._slot_refs[slot] = 1
        self._num_shared_slots += 1

    def retain(self, slot: int) -> None:
        """Add a reference.

        :raises PoolError: the slot is not shared.
        """
        self._check_shared(slot)
        self._slot_refs[slot] += 1

    def release(self, slot: int) -> bool:
        """Drop a reference; True: it was the last and the slot is free.

        :raises PoolError: the slot is not shared.
        """
        self._check_shared(slot)
        self._slot_refs[slot] -= 1
        if self._slot_refs[slot]:
            return False
        self._num_shared_slots -= 1
        self._free_slots.append(slot)
        return True

    def _disown(self, slot: int) -> None:
        if not 0 <= slot < self.num_slots or not self._slot_owned[slot]:
            raise PoolError(f'slot {slot}: expected one that is being built, got one that is not')
        self._slot_owned[slot] = False
        self._num_owned_slots -= 1

    def _check_shared(self, slot: int) -> None:
        if not 0 <= slot < self.num_slots or not self._slot_refs[slot]:
            raise PoolError(f'slot {slot}: expected a shared one, got one without references')

    def check(self) -> None:
        """Assert the invariants; O(slots), for idle time and tests."""
        states = (
            [slot for slot, owned in enumerate(self._slot_owned) if owned],
            [slot for slot, refs in enumerate(self._slot_refs) if refs > 0],
        )
        assert (len(states[0]), len(states[1])) == (self._num_owned_slots, self._num_shared_slots)
        # Each slot is in exactly one of the three states.
        assert sorted([*self._free_slots, *states[0], *states[1]]) == list(range(self.num_slots))
