# SPDX-License-Identifier: Apache-2.0
"""The widget, drawn into memory."""

import ast
import json
import math
import os
import re
import subprocess
import sys
import time
import types
from xml.etree import ElementTree

import numpy as np
import pytest
from reports import Clock, feed, report

os.environ['QT_QPA_PLATFORM'] = 'offscreen'
pytest.importorskip('PyQt5.QtWidgets', reason='needs PyQt5 (extra `monitor`)')
pytest.importorskip('pyqtgraph', reason='needs pyqtgraph (extra `monitor`)')

from oxygen_ros.figures.latency_fields import FIELDS
from oxygen_ros.figures.thresholds import Level
from oxygen_ros.report import colours
from oxygen_ros.rqt.model import DEFAULT_TOPIC
from oxygen_ros.rqt.plot_view import round_up
from oxygen_ros.rqt.qt import QtCore, QtGui, QtWidgets
from oxygen_ros.rqt.widget import LatencyWidget


@pytest.fixture(scope='module')
def application():
    return QtWidgets.QApplication.instance() or QtWidgets.QApplication(['test'])


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def widget(application, clock):
    made = LatencyWidget(clock)
    made.resize(900, 640)
    made.show()
    application.processEvents()
    yield made
    made.stop()
    made.deleteLater()
    application.processEvents()


def picture_of(widget):
    """Return a picture of the widget: blue, green, red and a spare byte [height, width, 4]."""
    image = widget.grab().toImage().convertToFormat(QtGui.QImage.Format.Format_RGB32)
    data = image.constBits().asarray(image.sizeInBytes())
    return np.array(data, dtype=np.uint8).reshape(image.height(), image.width(), 4)


def places_of(widget, name):
    """Return where a colour stands in a picture of the widget: [height, width]."""
    colour = QtGui.QColor(name)
    return (picture_of(widget)[:, :, :3] == [colour.blue(), colour.green(), colour.red()]).all(2)


def test_a_plot_draws_its_series_in_their_colours(widget, clock):
    before = places_of(widget.plots[0], colours.BLUE).sum()
    feed(widget, clock, 40, make=lambda index: report(jitter_sd_ms=1.0))
    widget.refresh()
    assert places_of(widget.plots[0], colours.BLUE).sum() > before + 15


def test_a_line_is_cut_where_reports_or_values_are_missing(widget, clock):
    widget.set_window(10.0)

    def line_of(unknown):
        widget.clear()
        feed(widget, clock, 30, make=lambda index: report(jitter_sd_ms=0.7))
        clock.now_s += 4.0
        feed(
            widget,
            clock,
            30,
            make=lambda index: report(jitter_sd_ms=math.nan if index in unknown else 0.7),
        )
        widget.refresh()
        return places_of(widget.plots[0], colours.BLUE)[40:-40].any(0)

    whole, cut = line_of(unknown=()), line_of(unknown=range(10, 20))
    first, last = np.flatnonzero(whole)[[0, -1]]
    per_second = (last - first) / 9.8  # from the first report to the last
    assert (last - first) - whole.sum() == pytest.approx(4.0 * per_second, rel=0.05)
    assert whole.sum() - cut.sum() == pytest.approx(1.1 * per_second, rel=0.1)


def test_no_spike_of_ten_minutes_is_lost(widget, clock):
    widget.set_window(600.0)
    feed(
        widget,
        clock,
        6000,
        make=lambda index: report(jitter_max_ms=9.0 if index == 3210 else 1.0),
    )
    widget.refresh()
    line = places_of(widget.plots[0], colours.GREY)[30:-30]
    assert 1 <= line[: len(line) // 2].any(0).sum() <= 3


def test_bands_lie_on_top_of_each_other(widget, clock):
    stages = {
        'vision_ms': 10.0,
        'prefill_ms': 20.0,
        'action_pass_ms': 10.0,
        'decode_step_ms': 10.0,
    }
    feed(widget, clock, 600, make=lambda index: report(**stages))
    widget.refresh()
    heights = [
        np.median(places_of(widget.plots[2], colour)[30:-30].sum(0)[100:300])
        for colour in (colours.SKY, colours.BLUE, colours.ORANGE, colours.GREEN)
    ]
    assert heights / heights[0] == pytest.approx([1.0, 2.0, 1.0, 1.0], rel=0.25)


def test_beyond_a_limit_the_ground_is_tinted_and_the_limit_a_line(widget, clock):
    feed(widget, clock, 5, make=lambda index: report(ttft_ms=100.0))
    widget.refresh()
    warn = QtGui.QColor(colours.LEVELS[Level.WARN])
    picture = picture_of(widget.plots[3])[:, :, :3].astype(int)
    column = picture[30:-40, picture.shape[1] // 2]
    limit = np.abs(column - [warn.blue(), warn.green(), warn.red()]).sum(1).argmin()
    base = widget.palette().color(QtGui.QPalette.ColorRole.Base).blue()
    assert limit > 5 and (column[limit - 4 : limit - 1, 0] < base - 10).all()
    assert (column[limit + 2 : limit + 5, 0] > base - 10).all()


@pytest.mark.parametrize(
    'top, expected',
    [(0.0, 1.0), (math.nan, 1.0), (4.0, 4.0), (0.9, 1.0), (1100.0, 1500.0), (9.7e-3, 0.01)],
)
def test_axes_end_at_a_round_number(top, expected):
    assert round_up(top) == pytest.approx(expected)


def test_tiles_take_the_colour_of_their_level(widget, clock):
    tile = widget.tiles.tiles['jitter_sd_ms']
    for value, level in ((0.2, Level.GOOD), (0.9, Level.WARN), (5.0, Level.BAD)):
        feed(widget, clock, 1, make=lambda index, value=value: report(jitter_sd_ms=value))
        widget.refresh()
        assert tile.level is level
        assert tile.value.text() == f'{value:.2f} ms'
    colour = tile.value.palette().color(QtGui.QPalette.ColorRole.WindowText)
    assert colour.name() == colours.LEVELS[Level.BAD]


def test_a_stopped_node_shows_as_stale_within_five_seconds(widget, clock):
    feed(widget, clock, 20, make=lambda index: report(jitter_sd_ms=0.7))
    widget.refresh()
    assert 'live' in widget.toolbar.feed.text()
    series = places_of(widget.plots[0], colours.BLUE).sum()
    clock.now_s += 4.0
    widget.refresh()
    assert 'stale: no report for 4 s' in widget.toolbar.feed.text()
    assert colours.LEVELS[Level.BAD] in widget.toolbar.feed.text()
    assert widget.tiles.tiles['on_time_ratio'].level is Level.UNKNOWN
    assert places_of(widget.plots[0], colours.BLUE).sum() < series  # dimmed
    notice = colours.LEVELS[Level.BAD]
    assert all(places_of(plot, notice).sum() > 20 for plot in widget.plots)


def test_the_pause_button_holds_the_view(widget, clock):
    feed(widget, clock, 10, make=lambda index: report(jitter_sd_ms=0.25))
    widget.toolbar.pause.click()
    assert widget.model.paused
    feed(widget, clock, 10, make=lambda index: report(jitter_sd_ms=0.75))
    widget.refresh()
    assert widget.tiles.tiles['jitter_sd_ms'].value.text() == '0.25 ms'
    widget.toolbar.pause.click()
    assert widget.tiles.tiles['jitter_sd_ms'].value.text() == '0.75 ms'


def test_clear_empties_the_plots(widget, clock):
    feed(widget, clock, 10)
    widget.clear()
    assert widget.tiles.tiles['jitter_sd_ms'].value.text() == '--'
    assert all(plot.plot.empty for plot in widget.plots)


def test_png_and_csv_are_saved(widget, clock, tmp_path):
    feed(widget, clock, 10)
    widget.refresh()
    widget.export_png(tmp_path / 'shot.png')
    widget.export_csv(tmp_path / 'latency.csv')
    image = QtGui.QImage(str(tmp_path / 'shot.png'))
    assert (image.width(), image.height()) == (widget.width(), widget.height())
    assert len((tmp_path / 'latency.csv').read_text().splitlines()) == 11


def test_a_file_that_cannot_be_written_is_said_in_the_window(widget, tmp_path, monkeypatch):
    path = str(tmp_path / 'absent' / 'shot.png')
    monkeypatch.setattr(QtWidgets.QFileDialog, 'getSaveFileName', lambda *_: (path, ''))
    widget.toolbar.png_wanted.emit()
    assert widget.message.text() == f'not saved: cannot write {path}'


def test_settings_come_back_and_nonsense_is_ignored(widget, application, clock):
    widget.set_topic('/left/oxygen/latency')
    widget.set_window(300.0)
    other = LatencyWidget(clock)
    other.restore(widget.settings())
    assert (other.topic, other.model.window_s) == ('/left/oxygen/latency', 300.0)
    assert other.toolbar.topic.currentText() == '/left/oxygen/latency'
    for settings in ({}, {'topic': None, 'window_s': 'soon'}, {'window_s': '17'}):
        other.restore(settings)
    assert other.settings() == widget.settings()
    other.stop()


def test_the_timer_redraws_by_itself(widget, application, clock):
    feed(widget, clock, 5)
    end_s = time.monotonic() + 60.0
    value = widget.tiles.tiles['jitter_sd_ms'].value
    while value.text() != '0.10 ms':
        application.processEvents()
        assert time.monotonic() < end_s, value.text()
        time.sleep(0.01)


class _Settings(dict):
    set_value = dict.__setitem__
    value = dict.get


class _Context:
    """What rqt hands to a plugin."""

    def __init__(self, node):
        self.node = node
        self.widgets = []

    def serial_number(self):
        return 2

    def add_widget(self, widget):
        self.widgets.append(widget)


@pytest.fixture
def plugin_module(monkeypatch):
    stub = types.ModuleType('rqt_gui_py.plugin')
    stub.Plugin = type(
        'Plugin',
        (QtCore.QObject,),
        {'__init__': lambda self, context: QtCore.QObject.__init__(self)},
    )
    monkeypatch.setitem(sys.modules, 'rqt_gui_py', types.ModuleType('rqt_gui_py'))
    monkeypatch.setitem(sys.modules, 'rqt_gui_py.plugin', stub)
    monkeypatch.delitem(sys.modules, 'oxygen_ros.rqt.plugin', raising=False)
    import oxygen_ros.rqt.plugin as module

    yield module
    sys.modules.pop('oxygen_ros.rqt.plugin', None)


def test_the_plugin_shows_keeps_settings_and_closes(application, plugin_module):
    rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')
    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    node = rclpy.create_node('plugin_test', context=context)
    plugin = plugin_module.OxygenLatency(_Context(node))
    widget = plugin._widget
    assert widget.windowTitle() == 'Oxygen Latency (2)'
    saved = _Settings()
    widget.set_topic('/right/oxygen/latency')
    plugin.save_settings(_Settings(), saved)
    widget.set_topic('not a topic')
    assert 'topic: expected a name such as' in widget.message.text()
    plugin.restore_settings(_Settings(), saved)
    assert widget.topic == '/right/oxygen/latency' and not widget.message.text()
    assert '/right/oxygen/latency' in dict(node.get_topic_names_and_types())
    plugin.shutdown_plugin()
    assert not list(node.subscriptions)
    node.destroy_node()
    context.try_shutdown()


def test_the_perspective_lays_out_three_plugins_and_holds_nothing_but_literals(request):
    text = (request.config.rootpath / 'config' / 'oxygen.perspective').read_text()
    perspective = json.loads(text)
    manager = perspective['groups']['pluginmanager']
    running = ast.literal_eval(manager['keys']['running-plugins']['repr'])
    assert set(running) == {
        'oxygen_ros/OxygenLatency',
        'rqt_plot/Plot',
        'rqt_runtime_monitor/RuntimeMonitor',
    }
    plot = manager['groups']['plugin__rqt_plot__Plot__1']['groups']['plugin']['keys']
    for topic in ast.literal_eval(plot['topics']['repr']):
        assert topic.rpartition('/')[0] == DEFAULT_TOPIC and topic.rpartition('/')[2] in FIELDS
    # rqt evaluates what it imports.
    for value in re.findall(r'"repr": "(.*)"', text):
        ast.literal_eval(value)
    for value in re.findall(r'"repr\(QByteArray.hex\)": "(.*)"', text):
        assert re.fullmatch(r"QtCore\.QByteArray\(b'[0-9a-f]*'\)", value)


def test_in_a_narrow_window_the_first_figures_stay(widget, application):
    widget.resize(widget.minimumSizeHint().width(), 640)
    application.processEvents()
    shown = [field for field, tile in widget.tiles.tiles.items() if tile.isVisible()]
    assert shown == list(widget.tiles.tiles)[: len(shown)] and 1 <= len(shown) < 9
    widget.resize(1600, 640)
    application.processEvents()
    assert all(tile.isVisible() for tile in widget.tiles.tiles.values())


@pytest.mark.parametrize(
    'found, said',
    [
        ('None', 'import of pyqtgraph halted'),
        ('types.SimpleNamespace(__version__="0.12.4")', 'got: 0.12.4'),
    ],
)
def test_without_pyqtgraph_the_figures_stay_and_a_line_says_what_to_install(found, said):
    program = f"""
import sys, types
sys.modules['pyqtgraph'] = {found}
from oxygen_ros.rqt.qt import QtWidgets
from oxygen_ros.rqt.widget import LatencyWidget
application = QtWidgets.QApplication(['test'])
widget = LatencyWidget()
widget.show()
widget.refresh()
print(len(widget.tiles.tiles), *(label.text() for label in widget.findChildren(QtWidgets.QLabel)))
"""
    environment = dict(os.environ, QT_QPA_PLATFORM='offscreen')
    done = subprocess.run(
        [sys.executable, '-c', program], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('9 ')
    assert said in done.stdout
    assert 'pip install pyqtgraph' in done.stdout
    assert 'apt install python3-pyqtgraph' in done.stdout


def test_plugin_xml_names_the_class_that_package_xml_exports(plugin_module, request):
    root = request.config.rootpath
    export = ElementTree.parse(root / 'package.xml').find('export/rqt_gui')
    assert export.get('plugin') == '${prefix}/plugin.xml'
    described = ElementTree.parse(root / 'plugin.xml').find('class')
    module, _, name = described.get('type').rpartition('.')
    assert module == plugin_module.__name__ and hasattr(plugin_module, name)
    assert described.get('base_class_type') == 'rqt_gui_py::Plugin'
