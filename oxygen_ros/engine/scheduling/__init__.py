# SPDX-License-Identifier: Apache-2.0
"""What runs next: work, costs, policies, and the record of it."""
