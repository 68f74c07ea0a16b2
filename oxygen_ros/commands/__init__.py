# SPDX-License-Identifier: Apache-2.0
"""Subcommands about models and checkpoints."""
