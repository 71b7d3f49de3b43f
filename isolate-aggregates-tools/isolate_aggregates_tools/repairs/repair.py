# SPDX-License-Identifier: Apache-2.0
"""A way to repair something."""

import dataclasses

from isolate_aggregates_tools.answers.scope import Asker
from isolate_aggregates_tools.repairs.commands import Commands


@dataclasses.dataclass(frozen=True)
class Repair:
    """A way to repair something.

    Use ``Effects`` to show it:
    commands must not be shown without saying whom they let in.

    :param commands: The commands, to run in order; empty if something has to
        be filled in first.
    :param text: If there are no commands: what to do. It must say whom that
        lets in.
    :param note: What else the commands do, beside them.
    :param safe: Whether the commands can be run without a decision, because
        they remove nothing that another program or person added, and give no
        server access to a host that the locks keep it out of.
    :param is_tried: Whether it was tried on a copy of the cloud. What has to
        be configured or bought cannot be.
    :param together: Whom it lets in only together with other repairs that are
        shown with it, and on which hosts.
    """

    commands: Commands = ()
    text: str = ''
    note: str = ''
    safe: bool = False
    is_tried: bool = True
    together: tuple[tuple[Asker, frozenset[str]], ...] = ()
