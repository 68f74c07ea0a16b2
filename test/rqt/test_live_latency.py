# SPDX-License-Identifier: Apache-2.0
"""Reports over ROS: into the widget from another thread, into the terminal."""

import io
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from reports import Clock, feed, report
from rich.console import Console

from oxygen_ros.cli import main
from oxygen_ros.figures.latency_fields import FIELDS
from oxygen_ros.rqt.model import MonitorModel
from oxygen_ros.rqt.top import graph, line, table

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')

TOPIC = '/monitor_test/latency'


def text_of(model):
    console = Console(file=io.StringIO(), width=110)
    console.print(table(model, TOPIC))
    return console.file.getvalue()


@pytest.fixture
def model():
    return MonitorModel(Clock())


def test_the_table_shows_now_worst_and_course(model):
    feed(
        model.history,
        model.history.clock,
        100,
        make=lambda index: report(jitter_sd_ms=3.0 if index == 50 else 0.2, ttft_ms=float('nan')),
    )
    model.history.add_camera_ages({'front': 25.0})
    text = text_of(model)
    assert 'live, 10 reports/s' in text
    jitter = next(row for row in text.splitlines() if row.startswith('jitter sd'))
    assert '0.20 ms' in jitter and '3.00 ms' in jitter
    assert any(row.startswith('first token') and '--' in row for row in text.splitlines())
    assert any(row.startswith('camera front') and '25.0 ms' in row for row in text.splitlines())


def test_the_terminal_says_when_reports_stop(model):
    assert 'waiting for the first report' in text_of(model)
    assert line(model) == 'waiting for the first report'
    feed(model.history, model.history.clock, 5)
    assert line(model).startswith('on_time_ratio=1 ')
    model.history.clock.now_s += 4.5
    assert line(model) == 'stale: no report for 4 s'
    assert 'stale: no report for 4 s' in text_of(model)


def test_the_course_keeps_the_peak_of_each_stretch(model):
    feed(
        model.history,
        model.history.clock,
        600,
        make=lambda index: report(jitter_sd_ms=8.0 if index == 300 else 1.0),
    )
    course = graph(model.view(), model.view().rows[:, FIELDS.index('jitter_sd_ms')])
    assert course.count('█') == 1 and set(course) == {'█', '▂'}


class _Publisher:
    """A node that publishes reports until it is told to end."""

    def __init__(self, topic=TOPIC):
        from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

        from oxygen_ros.msg import LatencyReport

        self.context = rclpy.Context()
        rclpy.init(args=[], context=self.context)
        self.node = rclpy.create_node('monitor_test', context=self.context)
        self.reports = self.node.create_publisher(LatencyReport, topic, 10)
        self.diagnostics = self.node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self.report = LatencyReport(jitter_sd_ms=0.125, ticks=50.0)
        self.array = DiagnosticArray(
            status=[
                DiagnosticStatus(
                    name=f'{node}: camera front', values=[KeyValue(key='age (s)', value=age)]
                )
                for node, age in (('monitor_test', '0.031'), ('another', '7.0'))
            ]
        )
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.ended.wait(0.05):
            self.reports.publish(self.report)
            self.diagnostics.publish(self.array)

    def close(self):
        self.ended.set()
        self.thread.join()
        self.node.destroy_node()
        self.context.try_shutdown()


@pytest.fixture(scope='module')
def publisher():
    made = _Publisher()
    yield made
    made.close()


@pytest.fixture
def watch():
    """Return a function that joins a widget to a publisher's topic; yields it fed."""
    os.environ['QT_QPA_PLATFORM'] = 'offscreen'
    pytest.importorskip('PyQt5.QtWidgets', reason='needs PyQt5 (extra `monitor`)')
    from rclpy.executors import SingleThreadedExecutor

    from oxygen_ros.rqt.qt import QtWidgets
    from oxygen_ros.rqt.source import LatencySource
    from oxygen_ros.rqt.widget import LatencyWidget

    application = QtWidgets.QApplication.instance() or QtWidgets.QApplication(['test'])
    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    executor = SingleThreadedExecutor(context=context)
    node = rclpy.create_node('monitor_listener', context=context)
    executor.add_node(node)
    widget = LatencyWidget()
    threads = set()
    widget.model.history.add = _noting(threads, widget.model.history.add)
    widget.restore({'topic': TOPIC})
    source = LatencySource(node, widget.inbox.report.emit, widget.inbox.camera_ages.emit)
    widget.watch(source)
    spinner = threading.Thread(target=executor.spin, daemon=True)
    spinner.start()

    def wait_for(condition):
        end_s = time.monotonic() + 60.0
        while not condition():
            application.processEvents()
            assert time.monotonic() < end_s, 'waited 60 s'
            time.sleep(0.01)

    yield widget, threads, wait_for
    widget.stop()
    source.close()
    executor.shutdown()
    spinner.join()
    node.destroy_node()
    context.try_shutdown()


def test_reports_reach_the_widget_on_its_own_thread(publisher, watch):
    widget, threads, wait_for = watch
    wait_for(lambda: len(widget.model.history) > 3 and widget.model.view().cameras)
    assert widget.model.view().rows[-1][FIELDS.index('jitter_sd_ms')] == 0.125
    assert {name: ages_ms[-1] for name, (_, ages_ms) in widget.model.view().cameras.items()} == {
        'front': pytest.approx(31.0)
    }
    assert threads == {threading.get_ident()}


@pytest.mark.slow
def test_a_node_that_ends_shows_as_stale(watch):
    widget, _, wait_for = watch
    ends = _Publisher('/ends/latency')
    widget.set_topic('/ends/latency')
    try:
        wait_for(lambda: 'live' in widget.toolbar.feed.text())
    finally:
        ends.close()
    # How soon is shown on a clock of the test's own, test_latency_widget.py.
    wait_for(lambda: 'stale' in widget.toolbar.feed.text())


def _noting(threads, function):
    def noted(*args):
        threads.add(threading.get_ident())
        function(*args)

    return noted


@pytest.mark.slow
def test_top_into_a_pipe_prints_lines_and_ends_with_the_pipe(publisher):
    process = subprocess.Popen(
        [sys.executable, '-m', 'oxygen_ros.cli', 'top', '--topic', TOPIC, '--period', '0.2'],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = iter(process.stdout.readline, '')
    found = next(text for text in lines if text.startswith('on_time_ratio='))
    assert 'jitter_sd_ms=0.125' in found
    process.stdout.close()
    assert process.wait(timeout=60.0) == 0
    assert process.stderr.read() == ''


def test_the_monitor_runs_until_it_is_interrupted():
    environment = dict(os.environ, QT_QPA_PLATFORM='offscreen')
    process = subprocess.Popen(
        [sys.executable, '-m', 'oxygen_ros.cli', 'monitor', '--topic', TOPIC],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout.readline().startswith(f'watching {TOPIC}')
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60.0) == 0
    assert 'Traceback' not in process.stderr.read()


def test_top_once_without_a_report_says_so(capsys):
    assert main(['top', '--once', '--topic', '/nobody/latency', '--timeout', '0.2']) == 1
    assert capsys.readouterr().err == (
        'oxygen top: /nobody/latency: expected a report within 0.2 s, got none\n'
    )


def test_the_monitor_without_a_display_names_the_way_out(monkeypatch, capsys):
    for name in ('QT_QPA_PLATFORM', 'DISPLAY', 'WAYLAND_DISPLAY'):
        monkeypatch.delenv(name, raising=False)
    assert main(['monitor']) == 1
    error = capsys.readouterr().err
    assert 'expected DISPLAY' in error and 'oxygen top' in error and error.count('\n') == 1


def test_the_monitor_without_qt_names_the_extra(monkeypatch, capsys):
    monkeypatch.setenv('QT_QPA_PLATFORM', 'offscreen')
    monkeypatch.delitem(sys.modules, 'oxygen_ros.rqt.qt', raising=False)
    for name in ('python_qt_binding', 'PyQt5'):
        monkeypatch.setitem(sys.modules, name, None)  # importing it fails
    for name in [name for name in sys.modules if name.startswith('PyQt5.')]:
        monkeypatch.delitem(sys.modules, name)
    assert main(['monitor']) == 1
    assert "pip install 'oxygen_ros[monitor]'" in capsys.readouterr().err
