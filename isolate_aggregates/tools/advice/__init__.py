# SPDX-License-Identifier: Apache-2.0
"""Repairs, as commands to paste, and whom each of them lets in.

1. ``commands`` writes the commands.
2. ``outcome`` carries them out on a snapshot, in memory.
3. ``access`` computes who may use which hosts of a snapshot.
4. ``effects`` compares the access before and after a repair.
5. ``openings`` says whom a repair lets in, as data and in words.
"""

from isolate_aggregates.tools.advice.effects import Advice, Effects
from isolate_aggregates.tools.advice.repair import Repair

__all__ = ['Advice', 'Effects', 'Repair']
