# SPDX-License-Identifier: Apache-2.0
"""The findings of an audit: problem, consequence and repair."""

import dataclasses
import enum

from isolate_aggregates.tools.advice import Repair


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
    :param repairs: The ways to repair it, of which an operator chooses one.
        What gives a key comes before what takes a lock away.
    """

    kind: str
    severity: Severity
    subject: str
    problem: str
    consequence: str
    repairs: tuple[Repair, ...] = ()

    @property
    def safe(self) -> bool:
        """Whether its first repair can be run without a decision."""
        return any(repair.safe for repair in self.repairs[:1])
