# SPDX-License-Identifier: Apache-2.0
"""The `oxygen` command: one module a subcommand, loaded only when it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import importlib
import sys

from .errors import OxygenError

# name: (module with `add_arguments(parser)` and `run(args) -> int`, line of help)
COMMANDS = {
    'audit': ('oxygen_ros.memory.audit.audit_cli', 'verify, repair, show or export an audit log'),
    'bench': ('oxygen_ros.bench.command', 'measure memory and speed'),
    'demo': (
        'oxygen_ros.demo.command',
        'run cameras, node and client, and show what the node does',
    ),
    'inspect': (
        'oxygen_ros.commands.inspect',
        'say what a checkpoint holds, or how a running node uses memory',
    ),
    'make-checkpoint': (
        'oxygen_ros.commands.make_checkpoint',
        'write a small random checkpoint in the real layout',
    ),
    'monitor': ('oxygen_ros.rqt.monitor', 'watch latency in a window'),
    'report': ('oxygen_ros.report.command', 'a page of plots from a recording or a benchmark'),
    'parity': ('oxygen_ros.commands.parity', 'compare a checkpoint with its original'),
    'plan': ('oxygen_ros.commands.plan', 'estimate memory, times and cost on a board'),
    'replay': (
        'oxygen_ros.commands.replay',
        'play a recording against the node, exactly repeatable or in real time',
    ),
    'top': ('oxygen_ros.rqt.top', 'watch latency in a terminal'),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit status.

    An error of the user's ends in one line on stderr and status 1 (a wrong argument: 2); Ctrl-C in
    status 130.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog='oxygen', description='One VLA that moves, talks and remembers at once.'
    )
    subparsers = parser.add_subparsers(dest='command', metavar='COMMAND', required=True)
    # Only the module of the command at hand is imported: `oxygen demo --help` must not wait for
    # the others.
    chosen = next((argument for argument in arguments if not argument.startswith('-')), None)
    for name, (module_name, help_line) in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=help_line, description=help_line)
        if name == chosen:
            module = importlib.import_module(module_name)
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    args = parser.parse_args(arguments)
    try:
        return int(args.run(args))
    except OxygenError as error:
        print(f'oxygen {args.command}: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == '__main__':
    sys.exit(main())
