# SPDX-License-Identifier: Apache-2.0
"""The base of all errors that are the caller's to mend; each says what was expected and got."""


class OxygenError(Exception):
    """Something the user gave cannot be used; the message is one clear line."""
