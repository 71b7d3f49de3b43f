# SPDX-License-Identifier: Apache-2.0
"""Collects where the parts of a document contradict each other."""

from collections.abc import Collection, Iterable, Sequence

from isolate_aggregates.suggestions import meant
from isolate_aggregates_tools.cloud.file.yaml_errors import Place, Problem


class Contradictions(ValueError):
    """The parts of a document contradict each other."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__('; '.join(problem.text for problem in self.problems))


class Collector:
    """Collects contradictions."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        # Names and texts that are reported at their first place only.
        self._reported: set[str] = set()

    def check(self) -> None:
        """Raise if there are any.

        :raises Contradictions: with all of them.
        """
        if self.problems:
            raise Contradictions(self.problems)

    def note(self, place: Place, text: str) -> None:
        self.problems.append(Problem(place, text))

    def note_once(self, place: Place, text: str) -> None:
        """Report a problem unless it was, at another place."""
        if text not in self._reported:
            self._reported.add(text)
            self.note(place, text)

    def look_up(
        self,
        place: Place,
        name: str,
        names: Collection[str],
        problem: str,
        remedy: str = '',
    ) -> None:
        """Report an unknown name at its first place."""
        if name not in names and name not in self._reported:
            self._reported.add(name)
            self.note(
                place,
                f'names {name!r}, {problem}{meant(name, names)}{remedy}',
            )

    def distinct(
        self, key: str, things: Sequence[tuple[str, str, Place]]
    ) -> None:
        """Report names and keys that are not unique."""
        self.once('the name', ((name, place) for name, _, place in things))
        # Equal names lead to equal derived keys; report only the names.
        keys = {(name, value): place for name, value, place in things}
        self.once(
            f'the {key}',
            ((value, place) for (_, value), place in keys.items()),
        )

    def once(self, what: str, values: Iterable[tuple[str, Place]]) -> None:
        unique = set()
        for value, place in values:
            if value in unique:
                self.note(
                    place,
                    f'another one also has {what} {value!r}; each must have '
                    'its own',
                )
            unique.add(value)
