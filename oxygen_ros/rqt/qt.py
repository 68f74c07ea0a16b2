# SPDX-License-Identifier: Apache-2.0
"""The one place that picks a Qt binding, the one that rqt uses or PyQt5, and loads pyqtgraph."""

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


def _load_pyqtgraph() -> tuple[Any, str]:
    """Return it and an empty text; None and the reason where it is absent or too old."""
    try:
        # After the binding: it takes the one that is already imported.
        module = import_module('pyqtgraph')
        found = module.__version__
    except ImportError as error:
        module, found = None, str(error)
    if module is not None and tuple(int(part) for part in found.split('.')[:2]) >= (0, 13):
        return module, ''
    return None, (
        'plots: expected pyqtgraph 0.13 or newer, which `pip install pyqtgraph` brings (with ROS: '
        f'`apt install python3-pyqtgraph`), got: {found}'
    )


QtCore, QtGui, QtWidgets = _load()
Signal: Any = getattr(QtCore, 'Signal', None) or QtCore.pyqtSignal
pyqtgraph, NO_PLOTS = _load_pyqtgraph()

__all__ = ['NO_PLOTS', 'QtCore', 'QtGui', 'QtWidgets', 'Signal', 'pyqtgraph']
