# SPDX-License-Identifier: Apache-2.0
"""Repairs, as commands to paste, and whom each of them lets in.

1. ``commands`` writes the commands.
2. ``outcome`` carries them out on a snapshot, in memory.
3. ``effects`` compares who may use which hosts before and after a repair.
4. ``admitted`` says whom a repair lets in, as data and in words.
5. ``many_repairs`` compares the clouds before and after many at once.
6. ``near_names`` compares names, ``spelling`` finds what is misspelled, and
   ``renamed_hosts`` finds hosts with another name.
7. ``causes`` says why a request has no host however empty the hosts are, and
   ``unplaceable`` which flavors have none.
8. ``proposals`` proposes changes for a request, ``request_repairs`` tries
   them, and ``full_hosts`` and ``unpinning`` propose how to free room.
"""

from isolate_aggregates_tools.advice.effects import Advice, Effects
from isolate_aggregates_tools.advice.repair import Repair

__all__ = ['Advice', 'Effects', 'Repair']
