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

from collections.abc import Iterator
import dataclasses

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.constraints import Cause, Refuse, Require
from isolate_aggregates.filters.contract import RequestFilter
from isolate_aggregates.filters.required_metadata import (
    HOST_FILTER,
    RequiredMetadata,
    metadata_of,
    required_metadata,
    values_of,
)
from isolate_aggregates.request import RequestSpec


@dataclasses.dataclass(frozen=True)
class Matches:
    """The aggregates that match required metadata.

    :param invalid: Aggregates whose value is not a number although a number is
        required, each with the value.
    """

    aggregates: tuple[Aggregate, ...]
    invalid: tuple[tuple[Aggregate, str], ...]


@dataclasses.dataclass(frozen=True)
class AggregateInstanceExtraSpecs(RequestFilter):
    """Require the aggregates with the metadata that a flavor requires.

    All extra specs must be matched, each by any of the aggregates of a host.
    The request is refused if Nova would fail on a value.
    """

    def __call__(
        self, request: RequestSpec, aggregates: AggregateIndex
    ) -> Iterator[Require | Refuse]:
        """Yield a constraint for each extra spec that names metadata."""
        flavor = request.flavor
        for required in required_metadata(flavor.extra_specs):
            yield _constraint(required, f'flavor {flavor.name}', aggregates)


def _constraint(
    required: RequiredMetadata, flavor: str, aggregates: AggregateIndex
) -> Require | Refuse:
    if required.problem:
        return _refuse(
            'invalid-extra-spec',
            f'{flavor} has the extra spec {required.extra_spec}='
            f'{required.value}, and {required.problem}; correct the extra '
            'spec',
        )
    matches = find(required, aggregates)
    if matches.invalid:
        # There may be hundreds; report one at a time.
        aggregate, value = matches.invalid[0]
        return _refuse(
            'invalid-metadata',
            f'{flavor} requires {required}, and aggregate {aggregate.name} '
            f'has {required.key}={value}, which is not a number; correct the '
            'metadata',
        )
    if not matches.aggregates:
        return _refuse(
            'no-matching-metadata',
            f'no aggregate has metadata that matches {required}, which '
            f'{flavor} requires',
        )
    return Require(
        matches.aggregates,
        Cause('required-metadata', f'{flavor} requires {required}'),
        HOST_FILTER,
    )


def _refuse(kind: str, text: str) -> Refuse:
    return Refuse(Cause(kind, text), HOST_FILTER)


def find(required: RequiredMetadata, aggregates: AggregateIndex) -> Matches:
    """Return the aggregates that match required metadata.

    :param required: The required metadata, without a problem for Nova.
    """
    return aggregates.remember(
        ('required metadata', required.key, required.value),
        lambda: _find(required, aggregates),
    )


def _find(required: RequiredMetadata, aggregates: AggregateIndex) -> Matches:
    matching: list[Aggregate] = []
    invalid: list[tuple[Aggregate, str]] = []
    for aggregate in aggregates:
        text = metadata_of(aggregate).get(required.key)
        if text is None:
            continue
        is_match = False
        for value in sorted(values_of(text)):
            try:
                is_match |= required.matches(value)
            except ValueError:
                invalid.append((aggregate, value))
        if is_match:
            matching.append(aggregate)
    return Matches(tuple(matching), tuple(invalid))
