# SPDX-License-Identifier: Apache-2.0
"""Send flavors to the aggregates whose metadata they require.

A flavor requires metadata with extra specs that have the scope
``aggregate_instance_extra_specs`` or no scope. For each of them, a host must
be in an aggregate whose metadata matches. This is the behaviour of Nova's host
filter
`AggregateInstanceExtraSpecsFilter
<https://docs.openstack.org/nova/latest/admin/scheduling.html#aggregateinstanceextraspecsfilter>`_,
applied before the query to Placement, so that the limit on allocation
candidates cannot hide matching hosts.
"""

from collections.abc import Iterator, Sequence
import dataclasses
from typing import ClassVar

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.constraints import Refuse, Require
from isolate_aggregates.filters.destination import Constraint
from isolate_aggregates.filters.wanted import (
    HOST_FILTER,
    Wanted,
    metadata_of,
    values_of,
    wanted_metadata,
)
from isolate_aggregates.request import RequestSpec


@dataclasses.dataclass(frozen=True)
class WantsMetadata:
    """The cause: a flavor requires metadata of a host's aggregates.

    :param flavor: The name of the flavor.
    :param wanted: The required metadata.
    """

    flavor: str
    wanted: Wanted

    def __str__(self) -> str:
        return f'flavor {self.flavor} requires {self.wanted}'


@dataclasses.dataclass(frozen=True)
class NoSuchMetadata(WantsMetadata):
    """The cause: no aggregate has the metadata that a flavor requires."""

    def __str__(self) -> str:
        return (
            f'no aggregate has metadata that matches {self.wanted}, which '
            f'flavor {self.flavor} requires'
        )


@dataclasses.dataclass(frozen=True)
class BadExtraSpec(WantsMetadata):
    """The cause: Nova fails on an extra spec, for any aggregate."""

    def __str__(self) -> str:
        return (
            f'flavor {self.flavor} has the extra spec '
            f'{self.wanted.extra_spec}={self.wanted.value}, and '
            f'{self.wanted.problem}; correct the extra spec'
        )


@dataclasses.dataclass(frozen=True)
class BadMetadata(WantsMetadata):
    """The cause: Nova cannot compare the metadata of an aggregate.

    :param aggregate: The name of the aggregate.
    :param value: The value that is not a number.
    """

    aggregate: str
    value: str

    def __str__(self) -> str:
        return (
            f'{super().__str__()}, and aggregate {self.aggregate} has '
            f'{self.wanted.key}={self.value}, which is not a number; correct '
            'the metadata'
        )


@dataclasses.dataclass(frozen=True)
class Met:
    """The aggregates that match required metadata.

    :param aggregates: The aggregates with a matching value.
    :param bad: Aggregates whose value is not a number although a number is
        required, each with the value.
    """

    aggregates: tuple[Aggregate, ...]
    bad: tuple[tuple[Aggregate, str], ...]


@dataclasses.dataclass(frozen=True)
class AggregateInstanceExtraSpecs:
    """Require the aggregates with the metadata that a flavor requires.

    All extra specs must be matched, each by any of the aggregates of a host.
    The request is refused if Nova would fail on a value.
    """

    # Only flavors require metadata.
    KEY_SOURCES: ClassVar[Sequence[str]] = ('flavor',)

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Constraint]:
        """Yield a constraint for each extra spec that names metadata.

        :param request: The request that is being scheduled.
        :param aggregates: An index of all aggregates.
        """
        flavor = request.flavor
        for wanted in wanted_metadata(flavor.extra_specs):
            if wanted.problem:
                yield Refuse(BadExtraSpec(flavor.name, wanted), HOST_FILTER)
                continue
            met = find(wanted, aggregates)
            if met.bad:
                # There may be hundreds; report one at a time.
                aggregate, value = met.bad[0]
                yield Refuse(
                    BadMetadata(flavor.name, wanted, aggregate.name, value),
                    HOST_FILTER,
                )
            elif met.aggregates:
                cause = WantsMetadata(flavor.name, wanted)
                yield Require(met.aggregates, cause, HOST_FILTER)
            else:
                yield Refuse(NoSuchMetadata(flavor.name, wanted), HOST_FILTER)


def find(wanted: Wanted, aggregates: AggregateIndex) -> Met:
    """Return the aggregates that match required metadata.

    :param wanted: The required metadata, without a problem for Nova.
    :param aggregates: An index of all aggregates.
    """
    return aggregates.remember(
        ('wanted', wanted.key, wanted.value),
        lambda: _find(wanted, aggregates),
    )


def _find(wanted: Wanted, aggregates: AggregateIndex) -> Met:
    found: list[Aggregate] = []
    bad: list[tuple[Aggregate, str]] = []
    for aggregate in aggregates:
        text = metadata_of(aggregate).get(wanted.key)
        if text is None:
            continue
        is_met = False
        for value in sorted(values_of(text)):
            try:
                is_met |= wanted.is_met_by(value)
            except ValueError:
                bad.append((aggregate, value))
        if is_met:
            found.append(aggregate)
    return Met(tuple(found), tuple(bad))
