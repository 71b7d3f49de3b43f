# SPDX-License-Identifier: Apache-2.0
"""Request groups, and the query string they serialize to.

The parameters are those of ``GET /allocation_candidates`` in the `Placement
API reference
<https://docs.openstack.org/api-ref/placement/#list-allocation-candidates>`_.
For every request that Nova can express, the query string equals that of Nova's
own ``ResourceRequest.to_querystring()``.
"""

from collections.abc import Iterator, Set
import dataclasses
from urllib import parse

from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.placement import microversion as mv

Param = tuple[str, str]


@dataclasses.dataclass
class RequestGroup:
    """A request group.

    The unsuffixed group can be served by several providers of one tree and by
    sharing providers, a suffixed group only by a single provider.

    :param suffix: Empty, or up to 64 of the characters ``a-zA-Z0-9_-``.
    :param any_traits: Sets of traits; one trait of each set is required.
    :param aggregates: Sets of aggregate uuids; the provider must be a member
        of at least one aggregate of each set.
    :param forbidden_aggregates: The uuids of aggregates that the provider must
        not be a member of.
    :param in_tree: The uuid of a provider whose tree must serve the group.
    """

    suffix: str = ''
    resources: dict[str, int] = dataclasses.field(default_factory=dict)
    required_traits: set[str] = dataclasses.field(default_factory=set)
    any_traits: list[frozenset[str]] = dataclasses.field(default_factory=list)
    forbidden_traits: set[str] = dataclasses.field(default_factory=set)
    aggregates: list[frozenset[str]] = dataclasses.field(default_factory=list)
    forbidden_aggregates: Set[str] = dataclasses.field(default_factory=set)
    in_tree: str | None = None

    def __post_init__(self) -> None:
        """Reject a suffix that Placement would read differently."""
        if self.suffix and not xs.SUFFIX.fullmatch(self.suffix):
            raise errors.InvalidRequest(
                f'{self.suffix!r} is not a valid suffix of a request group; '
                'use at most 64 of the characters a-z, A-Z, 0-9, _ and -.'
            )

    @property
    def is_empty(self) -> bool:
        """Whether the group requests nothing.

        As in Nova, ``in_tree`` alone does not count.
        """
        return not (
            self.resources
            or self.required_traits
            or self.any_traits
            or self.forbidden_traits
            or self.aggregates
            or self.forbidden_aggregates
        )

    def to_queryparams(self) -> Iterator[Param]:
        """Yield the query parameters of this group."""
        amounts = sorted(f'{rc}:{n}' for rc, n in self.resources.items())
        yield f'resources{self.suffix}', ','.join(amounts)
        traits = sorted(self.required_traits)
        traits += [f'!{trait}' for trait in sorted(self.forbidden_traits)]
        if traits:
            yield f'required{self.suffix}', ','.join(traits)
        for choice in self.any_traits:
            yield self._one_of('required', choice)
        for choice in self.aggregates:
            yield self._one_of('member_of', choice)
        if self.forbidden_aggregates:
            uuids = ','.join(sorted(self.forbidden_aggregates))
            yield f'member_of{self.suffix}', f'!in:{uuids}'
        if self.in_tree:
            yield f'in_tree{self.suffix}', self.in_tree

    def _one_of(self, key: str, choice: frozenset[str]) -> Param:
        if not choice:
            raise errors.InvalidRequest(
                f'{key}{self.suffix} requires one of an empty list; no host '
                'can satisfy that.'
            )
        return f'{key}{self.suffix}', f'in:{",".join(sorted(choice))}'

    def features(self) -> Iterator[mv.Feature]:
        """Yield the features of Placement that this group needs."""
        if self.required_traits:
            yield mv.REQUIRED_TRAITS
        if self.forbidden_traits:
            yield mv.FORBIDDEN_TRAITS
        if self.any_traits:
            yield mv.ANY_TRAITS
        if self.aggregates:
            yield mv.MEMBER_OF
        if len(self.aggregates) > 1:
            yield mv.REPEATED_MEMBER_OF
        if self.forbidden_aggregates:
            yield mv.FORBIDDEN_AGGREGATES
        if self.in_tree:
            yield mv.IN_TREE
        if self.suffix:
            yield mv.GRANULAR
            # Until 1.33 a suffix was a number without leading zeros.
            number = self.suffix.isascii() and self.suffix.isdigit()
            if not number or self.suffix.startswith('0'):
                yield mv.STRING_SUFFIXES


@dataclasses.dataclass
class ResourceRequest:
    """A request to ``GET /allocation_candidates``.

    :param groups: The request groups by suffix; the unsuffixed group has the
        empty suffix.
    :param group_policy: ``none`` or ``isolate``: whether suffixed groups may
        be served by the same provider.
    :param same_subtree: Sets of suffixes; the providers that serve the groups
        of a set must be in one subtree.
    """

    groups: dict[str, RequestGroup] = dataclasses.field(default_factory=dict)
    group_policy: str | None = None
    root_required: set[str] = dataclasses.field(default_factory=set)
    root_forbidden: set[str] = dataclasses.field(default_factory=set)
    same_subtree: list[frozenset[str]] = dataclasses.field(
        default_factory=list
    )
    limit: int | None = None

    def group(self, suffix: str = '') -> RequestGroup:
        """Return the request group with a suffix; create it if necessary."""
        if suffix not in self.groups:
            self.groups[suffix] = RequestGroup(suffix)
        return self.groups[suffix]

    def merged_resources(self) -> dict[str, int]:
        """Return the amounts by resource class over all groups."""
        totals: dict[str, int] = {}
        for group in self.groups.values():
            for resource_class, amount in group.resources.items():
                totals[resource_class] = totals.get(resource_class, 0) + amount
        return totals

    @property
    def all_required_traits(self) -> frozenset[str]:
        """All traits that at least one group requires."""
        return frozenset().union(
            *(group.required_traits for group in self.groups.values())
        )

    @property
    def traits(self) -> frozenset[str]:
        """All traits that it names, also those that it forbids."""
        return frozenset().union(
            self.root_required,
            self.root_forbidden,
            *(
                some
                for group in self.groups.values()
                for some in (
                    group.required_traits,
                    group.forbidden_traits,
                    *group.any_traits,
                )
            ),
        )

    def to_queryparams(self) -> list[Param]:
        """Return the query parameters, sorted."""
        params: list[Param] = []
        if self.limit is not None:
            params.append(('limit', str(self.limit)))
        if self.group_policy is not None:
            params.append((GROUP_POLICY, self.group_policy))
        root = sorted(self.root_required)
        root += [f'!{trait}' for trait in sorted(self.root_forbidden)]
        if root:
            params.append(('root_required', ','.join(root)))
        for suffixes in self.same_subtree:
            params.append(('same_subtree', ','.join(sorted(suffixes))))
        for group in self.groups.values():
            params.extend(group.to_queryparams())
        return sorted(params)

    def to_querystring(self) -> str:
        """Return the encoded query string."""
        return parse.urlencode(self.to_queryparams())

    def features(self) -> Iterator[mv.Feature]:
        """Yield the features of Placement that this request needs."""
        yield mv.CANDIDATES
        if self.limit is not None:
            yield mv.LIMIT
        if self.group_policy is not None:
            yield mv.GRANULAR
        if self.root_required or self.root_forbidden:
            yield mv.ROOT_REQUIRED
        if self.same_subtree:
            yield mv.SAME_SUBTREE
        for group in self.groups.values():
            yield from group.features()

    @property
    def needed(self) -> mv.Feature:
        """The feature that needs the newest microversion."""
        return max(self.features())

    @property
    def microversion(self) -> str:
        """The oldest microversion that supports this request."""
        return self.needed.microversion


GROUP_POLICY = 'group_policy'


GROUP_POLICIES = ('none', 'isolate')
