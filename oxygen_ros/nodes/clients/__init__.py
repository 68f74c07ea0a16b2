# SPDX-License-Identifier: Apache-2.0
"""Clients of the running node: of the demo, the benchmark and the command line."""
