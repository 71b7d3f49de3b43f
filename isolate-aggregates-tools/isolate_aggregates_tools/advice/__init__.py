# SPDX-License-Identifier: Apache-2.0
"""Repairs, as commands to paste, and whom each of them lets in.

1. ``commands`` writes the commands.
2. ``outcome`` carries them out on a snapshot, in memory.
3. ``effects`` compares who may use which hosts before and after a repair.
4. ``openings`` says whom a repair lets in, as data and in words.
5. ``refusals`` finds the commands that nova-api refuses.
6. ``near_names`` compares names, ``spelling`` finds what is misspelled, and
   ``renamed`` finds hosts with another name.
7. ``causes`` says why a request has no host however empty the hosts are, and
   ``nowhere`` which flavors have none.
8. ``ways`` proposes changes for a request, and ``mending`` tries them.
"""

from isolate_aggregates_tools.advice.effects import Advice, Effects
from isolate_aggregates_tools.advice.repair import Repair

__all__ = ['Advice', 'Effects', 'Repair']
