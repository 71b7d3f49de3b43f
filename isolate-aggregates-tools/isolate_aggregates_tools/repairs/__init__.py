# SPDX-License-Identifier: Apache-2.0
"""Changes of a cloud, as commands to paste and as what they do.

1. ``commands`` writes the commands.
2. ``outcome`` carries them out on a snapshot, in memory.
3. ``repair`` is a way to repair something: commands, or what to do.
4. ``unpinning`` releases a server from its availability zone.
"""
