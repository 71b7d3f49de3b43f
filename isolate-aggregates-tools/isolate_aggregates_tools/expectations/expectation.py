# SPDX-License-Identifier: Apache-2.0
"""Expectations of a cloud, as plain values, and where they fail.

An expectation has a :class:`Check`, which asks the answers of a cloud. A new
kind of expectation is a new check and its keys in ``schema.json``.
"""

from collections.abc import Iterator, Sequence
import dataclasses
from typing import Protocol

from isolate_aggregates.text import quoted
from isolate_aggregates_tools.expectations.answers import Answers
from isolate_aggregates_tools.request import Request


@dataclasses.dataclass(frozen=True)
class Violation:
    """Where a cloud differs from an expectation.

    :param text: The difference as a sentence, without a full stop.
    :param request: The request that was evaluated; None if there is none.
    :param missing_hosts: Hosts that it should be able to use, but may not.
    :param extra_hosts: Hosts that it may use, but should not.
    :param is_room: Whether the room now matters, not only which hosts may be
        used.
    :param reasons: Why, if it is known without an explanation.
    """

    text: str
    request: Request | None = None
    missing_hosts: frozenset[str] = frozenset()
    extra_hosts: frozenset[str] = frozenset()
    is_room: bool = False
    reasons: tuple[str, ...] = ()


class Check(Protocol):
    """What an expectation expects; as text, a sentence that says it."""

    def violations(self, answers: Answers) -> Iterator[Violation]:
        """Yield where a cloud differs.

        :raises NothingMatches: if the expectation names something that the
            cloud does not have.
        """


@dataclasses.dataclass(frozen=True)
class Expectation:
    """An expectation of a cloud.

    :param line: The line of its file that it begins in.
    """

    name: str
    line: int
    check: Check


@dataclasses.dataclass(frozen=True)
class Result:
    """Whether a cloud meets an expectation.

    :param violations: Where it does not; empty if it does.
    """

    expectation: Expectation
    violations: tuple[Violation, ...]


class NothingMatches(Exception):
    """The cloud has nothing that an expectation names."""


def evaluate(
    expectations: Sequence[Expectation], answers: Answers
) -> list[Result]:
    """Return whether a cloud meets each expectation."""
    return [
        Result(expectation, tuple(violations(expectation, answers)))
        for expectation in expectations
    ]


def violations(
    expectation: Expectation, answers: Answers
) -> Iterator[Violation]:
    """Yield where a cloud differs from an expectation."""
    try:
        yield from expectation.check.violations(answers)
    except NothingMatches as exc:
        yield Violation(str(exc))


def subject(request: Request, project: str | None) -> str:
    """Return the servers of a request as text.

    :param project: The project as the expectation names it.
    """
    text = f'flavor {request.flavor.name}'
    if request.image is not None:
        text += f' with image {quoted(request.image.name)}'
    if project is not None:
        text += f' in project {quoted(project)}'
    if request.availability_zone:
        text += f' in zone {request.availability_zone}'
    return text
