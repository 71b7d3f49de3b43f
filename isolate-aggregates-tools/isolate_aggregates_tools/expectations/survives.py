# SPDX-License-Identifier: Apache-2.0
"""The expectation that servers have somewhere to go if hosts fail."""

from collections.abc import Iterator
import dataclasses

from isolate_aggregates.text import counted, plural, quoted
from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.expectations.answers import Answers
from isolate_aggregates_tools.expectations.expectation import Violation
from isolate_aggregates_tools.expectations.matching import Place
from isolate_aggregates_tools.room.survival import Failure, survival


@dataclasses.dataclass(frozen=True)
class Survives:
    """The servers have somewhere to go if any hosts of a place fail.

    Mutations do not ask it: it would take minutes for each.

    :param failures: How many of the hosts fail at the same time.
    """

    place: Place
    failures: int

    def __str__(self) -> str:
        hosts = counted(self.failures, 'host')
        return f'{self.place} survives {hosts}'

    def violations(self, answers: Answers) -> Iterator[Violation]:
        """Yield the failures after which servers have nowhere to go.

        The servers must have been read.
        """
        result = survival(
            answers.snapshot,
            answers.context.conf,
            self.failures,
            self.place.members(answers),
            answers.context.builder.releases,
        )
        for case in result.cases:
            if case.stranded:
                yield _violation(case)


def _violation(case: Failure) -> Violation:
    number = len(case.stranded)
    return Violation(
        f'if {ranges.folded(case.hosts)} '
        f'{plural(len(case.hosts), "fails", "fail")}, '
        f'{counted(number, "server")} may have nowhere to go',
        reasons=tuple(
            f'server {quoted(one.server.name)} ({one.server.id}) of project '
            f'{quoted(one.server.project_id)} on {one.server.host}: '
            f'{one.reason}'
            for one in case.stranded
        ),
    )
