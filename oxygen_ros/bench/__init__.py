# SPDX-License-Identifier: Apache-2.0
"""The benchmark: rows and loads of one run, side by side."""
