# SPDX-License-Identifier: Apache-2.0
"""What an audit finds: a problem, what comes of it, and what repairs it."""

import dataclasses
import enum

from isolate_aggregates.inspect.audit import repairs


class Severity(enum.IntEnum):
    """How bad a finding is; the worse, the greater."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The name as people and options write it, such as ``warning``."""
        return self.name.lower()


@dataclasses.dataclass(frozen=True)
class Finding:
    """A problem, or something that could not be checked.

    The texts hold names that tenants and operators chose; code that puts them
    into markup has to escape them.

    :param kind: What kind of finding it is, such as ``trait-missing``; never
        changes, so that programs may compare it.
    :param subject: What it is about, such as ``aggregate win-hosts``.
    :param problem: What is wrong.
    :param consequence: What comes of it.
    :param repair: The commands that repair it; none if no command does.
    :param safe: Whether they may be run without a decision: they remove
        nothing that another program or person added, and give no server access
        to a host that it may not use.
    :param instead: An alternative repair, for an operator who knows which of
        the two is wrong; empty if there is none.
    """

    kind: str
    severity: Severity
    subject: str
    problem: str
    consequence: str
    repair: repairs.Commands = ()
    safe: bool = False
    instead: str = ''

    @property
    def repair_text(self) -> str | None:
        """The repair as a line for a shell; None if no command does it."""
        return repairs.shown(self.repair) or None
