# SPDX-License-Identifier: Apache-2.0
"""Send flavors to the aggregates whose metadata they want.

A flavor names metadata in extra specs with the scope
``aggregate_instance_extra_specs``, or without any. For each of them a host has
to be in an aggregate that meets it. This is the meaning of Nova's host filter
`AggregateInstanceExtraSpecsFilter
<https://docs.openstack.org/nova/latest/admin/scheduling.html#aggregateinstanceextraspecsfilter>`_,
applied before Placement is asked, so that its limit on candidates cannot hide
the right hosts.
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
    """The cause: a flavor wants metadata of the aggregates of a host.

    :param flavor: The name of the flavor.
    :param wanted: What it wants.
    """

    flavor: str
    wanted: Wanted

    def __str__(self) -> str:
        return f'flavor {self.flavor} wants {self.wanted}'


@dataclasses.dataclass(frozen=True)
class NoSuchMetadata(WantsMetadata):
    """The cause: no aggregate has the metadata that a flavor wants."""

    def __str__(self) -> str:
        return (
            f'no aggregate has metadata that meets {self.wanted}, which '
            f'flavor {self.flavor} wants'
        )


@dataclasses.dataclass(frozen=True)
class BadExtraSpec(WantsMetadata):
    """The cause: Nova fails on an extra spec, whatever aggregates have."""

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
    """Which aggregates have what is wanted.

    :param aggregates: Those with a value that meets it.
    :param bad: Those with a value that is not a number where a number is
        wanted, and the value.
    """

    aggregates: tuple[Aggregate, ...]
    bad: tuple[tuple[Aggregate, str], ...]


@dataclasses.dataclass(frozen=True)
class AggregateInstanceExtraSpecs:
    """Require the aggregates with the metadata that a flavor wants.

    Several extra specs must all be met, each by any of the aggregates that a
    host is in. A value that makes Nova fail refuses the request.
    """

    # The flavor alone says what it wants.
    KEY_SOURCES: ClassVar[Sequence[str]] = ('flavor',)

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Constraint]:
        """Yield a constraint for each extra spec that names metadata.

        :param request: What is being scheduled.
        :param aggregates: The aggregates as of one moment.
        """
        flavor = request.flavor
        for wanted in wanted_metadata(flavor.extra_specs):
            if wanted.problem:
                yield Refuse(BadExtraSpec(flavor.name, wanted), HOST_FILTER)
                continue
            met = find(wanted, aggregates)
            if met.bad:
                # There may be hundreds; an operator mends one after the other.
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
    """Return which aggregates have what is wanted.

    :param wanted: What is wanted; Nova does not fail on the extra spec.
    :param aggregates: The aggregates as of one moment.
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
