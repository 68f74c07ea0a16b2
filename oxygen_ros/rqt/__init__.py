# SPDX-License-Identifier: Apache-2.0
"""The latency monitor: a model without Qt, a plain widget, a thin rqt plugin, a terminal view."""
