# SPDX-License-Identifier: Apache-2.0
"""The threads: engine, tick, ingest and writer around the layers below."""
