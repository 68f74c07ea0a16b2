# SPDX-License-Identifier: Apache-2.0
"""Facts, and what is said held against them."""
