# SPDX-License-Identifier: Apache-2.0
"""The known bugs of Placement: when they may occur, and their messages.

See the page "Known mistakes of Placement" of the documentation.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
import dataclasses
import enum

from isolate_aggregates import text
from isolate_aggregates.inspect import ranges
from isolate_aggregates.placement.group import ResourceRequest
from isolate_aggregates.placement.provider import Provider


class Mistake(enum.Enum):
    """A known bug of Placement, by its name in the documentation."""

    LOST_ANCHORS = 'lost anchors'
    ADDED_AMOUNTS = 'added amounts'
    SHARING_CHILD = 'sharing child'

    @property
    def effect(self) -> str:
        """The effect of the bug."""
        return _EFFECTS[self]


_EFFECTS = {
    Mistake.LOST_ANCHORS: (
        'if only sharing providers serve the request group without a suffix, '
        'it keeps only one of the hosts that they share with'
    ),
    Mistake.ADDED_AMOUNTS: (
        'if several request groups request the same resource class, it adds '
        'up amounts of different candidates'
    ),
    Mistake.SHARING_CHILD: (
        'it fails if a sharing provider is not the root of its tree'
    ),
}


@dataclasses.dataclass(frozen=True)
class Difference:
    """The difference between Placement's response and its documentation.

    :param documented: The number of hosts in the documented response.
    :param left_out: The hosts that are missing in Placement's response.
    :param roots: The uuids of the root providers of the missing hosts.
    :param added: The hosts that are only in Placement's response.
    :param other_amounts: The hosts with candidates whose amounts were not
        requested.
    :param mistakes: The known bugs that cause the difference, if any.
    :param suspects: If Placement was not queried: the known bugs that may
        occur.
    :param failure: Why Placement returned an error; None if it did not.
    :param instead: Extra specs with the same meaning that get the documented
        response; empty if none were found.
    :param of: The extra specs that they replace.
    :param sharing: Names and uuids of the sharing providers that are not
        roots.
    """

    documented: int
    left_out: tuple[str, ...] = ()
    roots: frozenset[str] = frozenset()
    added: tuple[str, ...] = ()
    other_amounts: tuple[str, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    suspects: tuple[Mistake, ...] = ()
    failure: str | None = None
    instead: tuple[tuple[str, str], ...] = ()
    of: tuple[tuple[str, str], ...] = ()
    sharing: tuple[tuple[str, str], ...] = ()

    @property
    def sentences(self) -> Iterator[str]:
        """Sentences that describe the difference and what to do."""
        for mistake in self.suspects:
            yield (
                'Placement may answer differently, because of its known '
                f'mistake "{mistake.value}": {mistake.effect}.'
            )
        if self.suspects:
            yield (
                'Placement itself was not queried, because loading so many '
                'resource providers into it takes long; the command '
                'candidates does so.'
            )
            return
        if self.failure:
            yield f'Placement itself gives no answer: {self.failure}'
        if self.left_out:
            yield (
                f'Placement leaves out {len(self.left_out)} of '
                f'{text.counted(self.documented, "host")} that it should '
                'offer according to its documentation: '
                f'{ranges.folded(self.left_out)}.'
            )
        if self.added:
            yield (
                'Contrary to its documentation, Placement also offers '
                f'{ranges.folded(self.added)}.'
            )
        if self.other_amounts:
            yield (
                'Placement offers amounts that were not requested on '
                f'{ranges.folded(self.other_amounts)}.'
            )
        for mistake in self.mistakes:
            yield (
                'That is a known mistake of Placement, '
                f'"{mistake.value}": {mistake.effect}.'
            )
        if not self.mistakes and not self.failure:
            yield (
                'No known mistake of Placement explains this; if the cloud '
                'has changed meanwhile, run the command again.'
            )
        yield from self._advice()

    def _advice(self) -> Iterator[str]:
        if self.instead:
            less = f' instead of {_written(self.of)}' if self.of else ''
            yield (
                f'With {_written(self.instead)}{less} in the flavor, '
                'Placement gives the documented answer.'
            )
        elif Mistake.SHARING_CHILD in self.mistakes:
            for name, uuid in self.sharing:
                yield (
                    f'Make {name} a root provider: PUT '
                    f'/resource_providers/{uuid} with its name and '
                    '"parent_provider_uuid": null (microversion 1.37).'
                )
        elif self.mistakes:
            yield (
                'No equivalent flavor was found for which Placement gives the '
                'documented answer.'
            )


def _written(specs: Iterable[tuple[str, str]]) -> str:
    return ' and '.join(f'{key}={value}' for key, value in specs)


def suspects(
    query: ResourceRequest, providers: Iterable[Provider]
) -> tuple[Mistake, ...]:
    """Return the known bugs that a query may trigger."""
    sharing = [provider for provider in providers if provider.is_sharing]
    suspected = {
        Mistake.LOST_ANCHORS: _is_lent(query, sharing),
        Mistake.ADDED_AMOUNTS: is_added(query),
        Mistake.SHARING_CHILD: any(provider.parent for provider in sharing),
    }
    return tuple(mistake for mistake, is_so in suspected.items() if is_so)


def _is_lent(query: ResourceRequest, sharing: Iterable[Provider]) -> bool:
    """Return whether all unsuffixed resources can come from sharing providers.

    This only matters if there are other groups.
    """
    group = query.groups.get('')
    if group is None or not group.resources or len(query.groups) < 2:
        return False
    lent = {rc for provider in sharing for rc in provider.inventories}
    return group.resources.keys() <= lent


def is_added(query: ResourceRequest) -> bool:
    """Return whether several groups request the same resource class."""
    asked = Counter(
        resource_class
        for group in query.groups.values()
        for resource_class in group.resources
    )
    return query.group_policy != 'none' and any(
        count > 1 for count in asked.values()
    )
