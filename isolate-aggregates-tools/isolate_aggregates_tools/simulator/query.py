# SPDX-License-Identifier: Apache-2.0
"""Parses query strings as Placement does, and rejects the same ones.

The checks here depend only on the query and its microversion. Unknown traits
and resource classes are rejected later, by ``service``. The order of the
checks is Placement's, because the first failure determines the error code.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import re
from urllib import parse
import uuid

from oslo_utils import uuidutils

from isolate_aggregates_tools.placement import microversion as mv
from isolate_aggregates_tools.placement.group import (
    Param,
    RequestGroup,
    ResourceRequest,
)
from isolate_aggregates_tools.simulator import consistency
from isolate_aggregates_tools.simulator.refusal import (
    BAD_VALUE,
    DUPLICATE_KEY,
    Refused,
    refuse,
)

# The oldest microversion at which candidates are requested, and the default.
# Microversions are written without the "1." here.
OLDEST = mv.NESTED.minor
NEWEST = mv.ANY_TRAITS.minor

# Parameter name to all its values.
_Values = Mapping[str, Sequence[str]]

_GROUPED = re.compile(
    r'(resources|required|member_of|in_tree)([a-zA-Z0-9_-]{1,64})?'
)
_NUMBER = re.compile(r'[1-9][0-9]*')

# The microversion that introduced each parameter; 0 if it is older than all
# that clients send.
_OF_CANDIDATES = {
    'resources': 0,
    'limit': 0,
    'required': 0,
    'member_of': 0,
    'group_policy': 0,
    'in_tree': mv.IN_TREE.minor,
    'root_required': mv.ROOT_REQUIRED.minor,
    'same_subtree': mv.SAME_SUBTREE.minor,
}
_OF_PROVIDERS = {
    'name': 0,
    'uuid': 0,
    'member_of': 3,
    'resources': 4,
    'in_tree': 14,
    'required': 18,
}


@dataclasses.dataclass(frozen=True)
class ProviderQuery:
    """The parsed query of ``GET /resource_providers``."""

    group: RequestGroup
    name: str | None = None
    uuid: str | None = None


def candidates(
    params: Iterable[Param], minor: int = NEWEST
) -> ResourceRequest:
    """Parse the parameters of ``GET /allocation_candidates``.

    The groups of the request are in the order in which the query names them.
    A group without ``resources`` may be valid; one with an empty
    ``resources`` parameter is always rejected.

    :param minor: The microversion, at least ``OLDEST``.
    :raises Refused: if Placement would answer with 400.
    """
    values = _by_name(params)
    refuse([*_unknown(values, _since, minor), *_malformed(values)])
    # If limit or group_policy is repeated, Placement validates the last value
    # and uses the first. The API reference does not mention repetition.
    request = ResourceRequest(
        limit=int(values['limit'][0]) or None if 'limit' in values else None,
        group_policy=values.get('group_policy', [''])[0] or None,
    )
    _read_root_required(request, values.get('root_required', ()))
    _read_same_subtree(request, values.get('same_subtree', ()))
    problems: list[str] = []
    for name, texts in values.items():
        if match := _GROUPED.fullmatch(name):
            group = request.group(match[2] or '')
            problems += _read(group, match[1], name, texts, minor)
    refuse(problems)
    consistency.check(request, minor)
    return request


def providers(params: Iterable[Param], minor: int = NEWEST) -> ProviderQuery:
    """Parse the parameters of ``GET /resource_providers``.

    If a parameter that must not be repeated is repeated, Placement uses the
    last value.

    :raises Refused: if Placement would answer with 400.
    """
    values = _by_name(params)
    last = {name: texts[-1] for name, texts in values.items()}
    refuse(
        [
            *_unknown(values, _OF_PROVIDERS.get, minor),
            *(
                f'{name}={last[name]}: must be a uuid with dashes'
                for name in ('uuid', 'in_tree')
                if name in last and not _is_dashed_uuid(last[name])
            ),
        ]
    )
    group = RequestGroup()
    problems: list[str] = []
    for name in filter(_READERS.get, values):
        texts = values[name] if name in _REPEATED else [last[name]]
        problems += _read(group, name, name, texts, minor)
    refuse(problems)
    # Placement ignores an empty name.
    return ProviderQuery(group, last.get('name') or None, last.get('uuid'))


def parameters(query: str) -> list[Param]:
    """Decode a query string; both ``&`` and ``;`` separate parameters.

    :param query: The query string, without the question mark.
    :raises Refused: if it is not UTF-8.
    """
    try:
        return parse.parse_qsl(
            query.replace(';', '&'), keep_blank_values=True, errors='strict'
        )
    except UnicodeDecodeError:
        raise Refused(f'{query} is not UTF-8') from None


def _by_name(params: Iterable[Param]) -> _Values:
    values: dict[str, list[str]] = {}
    for name, value in params:
        values.setdefault(name, []).append(value)
    return values


def _unknown(
    values: _Values, since: Callable[[str], int | None], minor: int
) -> Iterator[str]:
    """Find parameters that do not exist in this microversion."""
    for name, texts in values.items():
        first = since(name)
        if first is None or first > minor:
            yet = f' before microversion 1.{first}' if first else ''
            yield f'{name}={texts[-1]}: there is no such parameter{yet}'


def _since(name: str) -> int | None:
    """Return the microversion that introduced a candidates parameter."""
    match = _GROUPED.fullmatch(name)
    if not match or match[2] is None:
        return _OF_CANDIDATES.get(name)
    is_number = _NUMBER.fullmatch(match[2])
    return max(
        _OF_CANDIDATES[match[1]], 0 if is_number else mv.STRING_SUFFIXES.minor
    )


def _malformed(values: _Values) -> Iterator[str]:
    """Find errors in the parameters that belong to no group."""
    limits = values.get('limit', ['1'])
    if not _NUMBER.fullmatch(limits[-1]) or not limits[0].isdecimal():
        yield f'limit={limits[-1]}: must be a positive integer'
    policy = values.get('group_policy', ['none'])[-1]
    if policy not in ('none', 'isolate'):
        yield f'group_policy={policy}: must be none or isolate'


def _read_root_required(
    request: ResourceRequest, values: Sequence[str]
) -> None:
    if not values:
        return
    if len(values) > 1:
        raise Refused('root_required must not be repeated', DUPLICATE_KEY)
    root = RequestGroup()
    try:
        if values[0].startswith('in:'):
            raise ValueError('in: is not allowed for the root provider')
        _traits(root, values[0], NEWEST)
    except ValueError as exc:
        raise Refused(f'root_required={values[0]}: {exc}') from None
    both = sorted(root.required_traits & root.forbidden_traits)
    refuse(
        (f'root_required both requires and forbids {t}' for t in both),
        BAD_VALUE,
    )
    request.root_required = root.required_traits
    request.root_forbidden = root.forbidden_traits


def _read_same_subtree(
    request: ResourceRequest, values: Sequence[str]
) -> None:
    for value in values:
        suffixes = frozenset(part.strip() for part in value.split(','))
        if '' in suffixes:
            raise Refused(
                f'same_subtree={value}: only groups with a suffix can be '
                'named',
                BAD_VALUE,
            )
        request.same_subtree.append(suffixes)


def _read(
    group: RequestGroup,
    kind: str,
    name: str,
    values: Sequence[str],
    minor: int,
) -> Iterator[str]:
    """Add the values of a parameter to a group; yield the errors in them."""
    if kind == 'required' and minor < mv.ANY_TRAITS.minor:
        # Older Placement silently ignores all values but the last.
        values = values[-1:]
    for number, value in enumerate(values):
        try:
            if kind == 'member_of' and number:
                _check(mv.REPEATED_MEMBER_OF, minor)
            _READERS[kind](group, value, minor)
        except ValueError as exc:
            yield f'{name}={value}: {exc}'


def _check(feature: mv.Feature, minor: int) -> None:
    if feature.minor > minor:
        raise ValueError(
            f'{feature.purpose} needs microversion {feature.microversion}'
        )


def _resources(group: RequestGroup, value: str, minor: int) -> None:
    resources: dict[str, int] = {}
    for part in value.split(','):
        resource_class, colon, amount = part.partition(':')
        if not colon:
            raise ValueError('resources must have the form CLASS:AMOUNT')
        try:
            resources[resource_class] = int(amount)
        except ValueError:
            raise ValueError(f'{amount!r} is not an integer') from None
        if resources[resource_class] < 1:
            raise ValueError('the amount must be at least 1')
    group.resources = resources


def _traits(group: RequestGroup, value: str, minor: int) -> None:
    one_of = value.startswith('in:')
    traits = [part.strip() for part in value.removeprefix('in:').split(',')]
    forbidden = {t.lstrip('!') for t in traits if t.startswith('!')}
    if one_of:
        _check(mv.ANY_TRAITS, minor)
    if forbidden:
        _check(mv.FORBIDDEN_TRAITS, minor)
    if not all((*traits, *forbidden)):
        raise ValueError('the name of a trait is empty')
    if one_of and forbidden:
        raise ValueError('a forbidden trait is not allowed after in:')
    if one_of:
        group.any_traits.append(frozenset(traits))
        return
    group.forbidden_traits |= forbidden
    group.required_traits |= {t for t in traits if not t.startswith('!')}


def _aggregates(group: RequestGroup, value: str, minor: int) -> None:
    uuids = value.removeprefix('!')
    if ',' in uuids and not uuids.startswith('in:'):
        raise ValueError('several aggregates must have the form in:UUID,UUID')
    choice = frozenset(uuids.removeprefix('in:').split(','))
    for aggregate in choice:
        _uuid(aggregate)
    if value.startswith('!'):
        _check(mv.FORBIDDEN_AGGREGATES, minor)
        group.forbidden_aggregates |= choice
    else:
        group.aggregates.append(choice)


def _in_tree(group: RequestGroup, value: str, minor: int) -> None:
    group.in_tree = _uuid(value.strip())


# The same thousands of aggregates are in each query of a large cloud.
@functools.lru_cache(maxsize=2**14)
def _uuid(value: str) -> str:
    if not uuidutils.is_uuid_like(value):
        raise ValueError(f'{value!r} is not a uuid')
    return value


def _is_dashed_uuid(value: str) -> bool:
    """Return whether JSON schema's format ``uuid`` accepts a value."""
    try:
        uuid.UUID(value)
    except ValueError:
        return False
    return all(value[position] == '-' for position in (8, 13, 18, 23))


# The parameters of /resource_providers that may be repeated.
_REPEATED = ('required', 'member_of')
# The function that adds one value of each parameter to a group.
_READERS: Mapping[str, Callable[[RequestGroup, str, int], None]] = {
    'resources': _resources,
    'required': _traits,
    'member_of': _aggregates,
    'in_tree': _in_tree,
}
