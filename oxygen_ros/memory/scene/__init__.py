# SPDX-License-Identifier: Apache-2.0
"""The scene graph: its grammar, its text, and how updates are merged."""
