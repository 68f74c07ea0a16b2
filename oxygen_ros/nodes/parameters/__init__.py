# SPDX-License-Identifier: Apache-2.0
"""The parameters: one table, declared, read, and made into settings."""
