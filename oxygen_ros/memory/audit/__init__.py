# SPDX-License-Identifier: Apache-2.0
"""The audit log: a chain of records, its proof and its repair."""
