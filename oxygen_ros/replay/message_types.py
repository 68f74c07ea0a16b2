# SPDX-License-Identifier: Apache-2.0
"""Deserialisation by the definitions that a recording carries, else by those of ROS 2 itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rosbags.serde import SerdeError
from rosbags.typesys import (
    get_types_from_idl,
    get_types_from_msg,
    get_typestore,
    Stores,
    TypesysError,
)
from rosbags.typesys.store import Typestore

from .storage import BagError, BagMessage, BROKEN, StoredTopic

# rosbags wraps only some of what it raises over a damaged payload or definition.
_DAMAGED = (SerdeError, TypesysError, AssertionError, AttributeError, TypeError, *BROKEN)
_IDL_RULE = '=' * 80 + '\n'


class MessageTypes:
    """Message classes by type name, made when they are first needed.

    A definition that cannot be parsed (a service event, say) spoils only its own type.
    """

    def __init__(self, topics: Iterable[StoredTopic]) -> None:
        self._defined = {topic.msgtype: topic for topic in topics if topic.definition}
        self._stores: dict[str, Typestore] = {}

    def deserialize(self, message: BagMessage) -> Any:
        """Return a dataclass with the message's fields; arrays are ndarrays.

        :raises BagError: the type is unknown, or the bytes are not one of it.
        """
        try:
            store = self._stores.get(message.msgtype)
            if store is None:
                store = self._stores[message.msgtype] = self._make_store(message.msgtype)
            return store.deserialize_cdr(message.data, message.msgtype)
        except _DAMAGED as error:
            reason = ' '.join(f'{type(error).__name__} {error}'.split())[:200]
            raise BagError(message.topic, f'a {message.msgtype} message', reason) from None

    def _make_store(self, msgtype: str) -> Typestore:
        topic = self._defined.get(msgtype)
        if topic is None:
            return get_typestore(Stores.ROS2_KILTED)
        store = get_typestore(Stores.EMPTY)
        if topic.definition_format == 'ros2msg':
            store.register(get_types_from_msg(topic.definition, msgtype))
            return store
        text = topic.definition
        several = text.startswith(f'{_IDL_RULE}IDL: ')
        for part in text.split(_IDL_RULE)[1:] if several else [f'\n{text}']:
            store.register(get_types_from_idl(part.split('\n', 1)[1]))
        return store
