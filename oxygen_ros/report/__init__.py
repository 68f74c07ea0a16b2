# SPDX-License-Identifier: Apache-2.0
"""What was measured, as pages and traces; the figures of ~/latency and their limits."""
