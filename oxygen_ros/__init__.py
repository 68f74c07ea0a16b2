# SPDX-License-Identifier: Apache-2.0
"""One Vision-Language-Action model on the robot that moves, talks and remembers at once.

The generated interfaces (msg, srv, action) lie in the installed copy of this package; from a
source checkout the path extension below joins both.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
__version__ = '0.1.0'
