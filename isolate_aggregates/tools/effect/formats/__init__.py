# SPDX-License-Identifier: Apache-2.0
"""Changes that other tools would make, read from their files.

1. ``documents`` reads a file, and says where it is wrong.
2. ``terraform``, ``ansible`` and ``korc`` compare it with a snapshot and yield
   the commands that have the same result.
3. ``order`` finds an order of these commands in which no server is let in or
   refused in between.
"""

from isolate_aggregates.tools.effect.formats.formats import FORMATS, read
from isolate_aggregates.tools.effect.formats.order import (
    Gap,
    Order,
    judged,
    safe,
)
from isolate_aggregates.tools.effect.formats.planned import Planned

__all__ = ['FORMATS', 'Gap', 'Order', 'Planned', 'judged', 'read', 'safe']
