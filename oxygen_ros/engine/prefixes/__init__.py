# SPDX-License-Identifier: Apache-2.0
"""From an observation to its shared prefix, once."""
