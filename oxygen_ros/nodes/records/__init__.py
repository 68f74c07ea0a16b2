# SPDX-License-Identifier: Apache-2.0
"""What a run leaves on disk, and what is read from there."""
