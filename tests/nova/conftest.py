# SPDX-License-Identifier: Apache-2.0
"""Keeps older releases of Nova from replacing threads in these tests.

Servers that the tests start in threads of this process would never answer.
"""

import os

os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')
