# SPDX-License-Identifier: Apache-2.0
"""The findings of an audit: problem, consequence and repair."""

from collections.abc import Callable, Iterable
import dataclasses
import enum
from typing import Annotated, Any, Self

from isolate_aggregates_tools.documents import Names
from isolate_aggregates_tools.repairs.repair import Repair


class Severity(enum.IntEnum):
    """The severity of a finding; a greater value is worse."""

    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The name in output and options, for example ``warning``."""
        return self.name.lower()


@dataclasses.dataclass(frozen=True, kw_only=True)
class About:
    """What a finding is about, all of it; names, or the ids of projects."""

    hosts: Names = ()
    aggregates: Names = ()
    flavors: Names = ()
    images: Names = ()
    projects: Names = ()
    servers: Annotated[Names, 'Their ids.'] = ()

    @classmethod
    def of(cls, **names: Iterable[str]) -> Self:
        """Return it with sorted names."""
        return cls(**{k: tuple(sorted(set(v))) for k, v in names.items()})


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
    :param about: All objects that it is about, for programs.
    :param check: What has found it; None if that is not known.
    """

    kind: str
    severity: Severity
    subject: str
    problem: str
    consequence: str
    repairs: tuple[Repair, ...] = ()
    about: About = About()
    check: Callable[[Any], Iterable['Finding']] | None = dataclasses.field(
        default=None, compare=False, repr=False
    )

    @property
    def safe(self) -> bool:
        """Whether its first repair can be run without a decision."""
        return any(repair.safe for repair in self.repairs[:1])
