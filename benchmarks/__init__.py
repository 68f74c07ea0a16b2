# SPDX-License-Identifier: Apache-2.0
"""Single measurements for who changes the code, each a `python -m benchmarks.NAME`; not installed.

What a user needs to judge a machine is `oxygen bench`.
"""
