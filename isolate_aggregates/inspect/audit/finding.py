# SPDX-License-Identifier: Apache-2.0
"""The findings of an audit: problem, consequence and repair."""

import dataclasses
import enum

from isolate_aggregates.inspect.audit import repairs


class Severity(enum.IntEnum):
    """The severity of a finding; a greater value is worse."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The name in output and options, for example ``warning``."""
        return self.name.lower()


@dataclasses.dataclass(frozen=True)
class Finding:
    """A problem, or a check that could not be made.

    The texts contain names that tenants and operators chose, so they must be
    escaped in markup.

    :param kind: The kind of finding, for example ``trait-missing``. It is
        stable, so that programs can compare it.
    :param subject: The affected object, for example ``aggregate win-hosts``.
    :param problem: What is wrong.
    :param consequence: The effect of the problem.
    :param repair: The commands that repair it; empty if there are none.
    :param safe: Whether the commands can be run without a decision, because
        they remove nothing that another program or person added, and give no
        server access to a host that it may not use.
    :param instead: Commands for an alternative repair, which an operator has
        to choose; empty if there are none.
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
        """The repair as a shell command line; None if there is none."""
        return repairs.shown(self.repair) or None
