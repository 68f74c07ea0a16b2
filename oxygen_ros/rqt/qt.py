# SPDX-License-Identifier: Apache-2.0
"""The one place that picks a Qt binding: the one that rqt uses, else PyQt5."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import OxygenError

_BINDINGS = ('python_qt_binding', 'PyQt5')


def _load() -> tuple[Any, Any, Any]:
    problem: ImportError | None = None
    for binding in _BINDINGS:
        try:
            core, gui, widgets = (
                import_module(f'{binding}.{part}') for part in ('QtCore', 'QtGui', 'QtWidgets')
            )
        except ImportError as error:
            problem = error
            continue
        return core, gui, widgets
    raise OxygenError(
        "Qt: expected PyQt5, which `pip install 'oxygen_ros[monitor]'` brings (with ROS: `apt "
        f'install python3-pyqt5`), got: {problem}'
    )


QtCore, QtGui, QtWidgets = _load()
Signal: Any = getattr(QtCore, 'Signal', None) or QtCore.pyqtSignal

__all__ = ['QtCore', 'QtGui', 'QtWidgets', 'Signal']
