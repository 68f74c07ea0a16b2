# SPDX-License-Identifier: Apache-2.0
"""The episodic store: SQLite, queries, retention."""
