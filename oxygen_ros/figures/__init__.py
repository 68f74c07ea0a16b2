# SPDX-License-Identifier: Apache-2.0
"""One rule for each figure: node, demo, benchmark, report and monitor all take it from here."""
