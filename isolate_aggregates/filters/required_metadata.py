# SPDX-License-Identifier: Apache-2.0
"""Parses and matches the aggregate metadata that a flavor requires.

The operators are those of Nova's ``nova.scheduler.filters.extra_specs_ops``;
see `AggregateInstanceExtraSpecsFilter
<https://docs.openstack.org/nova/latest/admin/scheduling.html#aggregateinstanceextraspecsfilter>`_.
"""

from collections.abc import Callable, Mapping
import dataclasses
import operator
import types

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import ZONE, zone_of

# Nova's host filter for these extra specs.
HOST_FILTER = 'AggregateInstanceExtraSpecsFilter'

# The request filter that does, and the scope of extra specs for both.
REQUEST_FILTER = 'aggregate_instance_extra_specs'

_ALTERNATIVES = '<or>'
_ALL = '<all-in>'

_NUMBERS: Mapping[str, Callable[[float, float], bool]] = (
    types.MappingProxyType({
        '=': operator.ge,
        '==': operator.eq,
        '!=': operator.ne,
        '>=': operator.ge,
        '<=': operator.le,
    })
)  # fmt: skip
_TEXTS: Mapping[str, Callable[[str, str], bool]] = types.MappingProxyType({
    's==': operator.eq,
    's!=': operator.ne,
    's<': operator.lt,
    's<=': operator.le,
    's>': operator.gt,
    's>=': operator.ge,
    '<in>': operator.contains,
})  # fmt: skip
_OPERATORS = frozenset({*_NUMBERS, *_TEXTS, _ALTERNATIVES, _ALL})


@dataclasses.dataclass(frozen=True)
class RequiredMetadata:
    """Metadata that one of the aggregates of a host must have.

    :param value: The value, optionally with an operator.
    """

    key: str
    value: str
    extra_spec: str

    def __str__(self) -> str:
        return f'{self.key}{"=" if self.is_plain else " "}{self.value}'

    @property
    def is_plain(self) -> bool:
        """Whether the value has no operator."""
        return _OPERATORS.isdisjoint(self.value.split()[:1])

    @property
    def problem(self) -> str:
        """Why Nova fails on it for any aggregate; empty if it does not."""
        words = self.value.split()
        if words == [_ALTERNATIVES]:
            return f'{_ALTERNATIVES} has no value after it'
        if len(words) > 1 and words[0] in _NUMBERS and not _is_number(
            words[1]
        ):  # fmt: skip
            return f'{words[1]} is not a number'
        return ''

    def matches(self, value: str) -> bool:
        """Return whether a metadata value matches.

        :raises ValueError: if Nova fails on it.
        """
        words = self.value.split()
        operation, operands = (words[0], words[1:]) if words else ('', [])
        if operation not in _OPERATORS:
            return value == self.value
        if operation == _ALTERNATIVES:
            if not operands:
                raise ValueError(self.problem)
            return value in operands[::2]
        if not operands:
            return False
        if operation == _ALL:
            return all(operand in value for operand in operands)
        if operation in _NUMBERS:
            return _NUMBERS[operation](float(value), float(operands[0]))
        return _TEXTS[operation](value, operands[0])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def required_metadata(
    extra_specs: Mapping[str, str],
) -> tuple[RequiredMetadata, ...]:
    """Return the aggregate metadata that a flavor requires.

    :param extra_specs: All its extra specs. Those with the scope of the filter
        and those without a scope count.
    """
    required = []
    for key, value in extra_specs.items():
        scope, colon, name = key.partition(':')
        if not colon:
            required.append(RequiredMetadata(key, value, key))
        elif scope == REQUEST_FILTER:
            required.append(RequiredMetadata(name, value, key))
    return tuple(required)


def metadata_of(aggregate: Aggregate) -> Mapping[str, str]:
    """Return the metadata of an aggregate as Nova's host filters see it."""
    zone = zone_of(aggregate)
    if zone is None or ZONE in aggregate.metadata:
        return aggregate.metadata
    return {**aggregate.metadata, ZONE: zone}


def values_of(text: str) -> frozenset[str]:
    """Return the values in a comma-separated metadata value."""
    return frozenset(value.strip() for value in text.split(','))
