# SPDX-License-Identifier: Apache-2.0
"""Reads query strings as Placement does, and refuses those it refuses.

What is refused, with status 400, depends on the query alone; that a trait or
a resource class is not known is found out later.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import re
from urllib import parse

from oslo_utils import uuidutils

from isolate_aggregates import exception
from isolate_aggregates.placement.group import (
    Param,
    RequestGroup,
    ResourceRequest,
)

_GROUPED = re.compile(
    r'(resources|required|member_of|in_tree)([a-zA-Z0-9_-]{1,64})?'
)
_LIMIT = re.compile(r'[1-9][0-9]*')


@dataclasses.dataclass(frozen=True)
class ProviderQuery:
    """The question of ``GET /resource_providers``.

    :param group: What each provider has to meet by itself.
    :param name: The provider's name.
    :param uuid: The provider's uuid.
    """

    group: RequestGroup
    name: str | None = None
    uuid: str | None = None


def candidates(params: Iterable[Param]) -> ResourceRequest:
    """Read the parameters of ``GET /allocation_candidates``.

    The groups of the request come in the order in which the query names them.
    A group without resources can be told from one whose ``resources`` are
    empty: the first may be allowed, the second never is.

    :param params: The parameters, decoded.
    :raises BadQuery: if the service would call them invalid.
    """
    request = ResourceRequest()
    problems = []
    params = list(params)
    for name, value in params:
        try:
            if name in _ONCE:
                _ONCE[name](request, [v for n, v in params if n == name])
            else:
                _add(request, name, value)
        except ValueError as exc:
            problems.append(f'{name}={value}: {exc}')
    _refuse(problems or _contradictions(request))
    return request


def providers(params: Iterable[Param]) -> ProviderQuery:
    """Read the parameters of ``GET /resource_providers``.

    Of a parameter that may not be repeated the service only sees the last.

    :param params: The parameters, decoded.
    :raises BadQuery: if the service would call them invalid.
    """
    query = ProviderQuery(RequestGroup())
    problems = []
    params = list(params)
    last = dict(params)
    for name, value in params:
        if name not in _REPEATED and value != last[name]:
            continue
        try:
            if name == 'name':
                # An empty name asks for nothing; the service takes it so.
                query = dataclasses.replace(query, name=value or None)
            elif name == 'uuid':
                query = dataclasses.replace(query, uuid=_uuid(value))
            elif name in _READERS:
                _READERS[name](query.group, value)
            else:
                raise ValueError('there is no such parameter')
        except ValueError as exc:
            problems.append(f'{name}={value}: {exc}')
    _refuse(problems)
    return query


def parameters(query: str) -> list[Param]:
    """Return the parameters of a query string, decoded.

    :param query: The query string, without the question mark.
    """
    return parse.parse_qsl(query, keep_blank_values=True)


def refused(problem: str) -> exception.BadQuery:
    """Return the error for a query that the service answers with 400."""
    return exception.BadQuery(
        'Placement', None, f'would call the request invalid (400): {problem}'
    )


def _refuse(problems: list[str]) -> None:
    if problems:
        raise refused('; '.join(problems))


def _add(request: ResourceRequest, name: str, value: str) -> None:
    """Add one parameter to a request."""
    if name == 'root_required':
        if request.root_required or request.root_forbidden:
            raise ValueError('it may be given once')
        if value.startswith('in:'):
            raise ValueError('the root cannot be asked for one of several')
        root = RequestGroup()
        _traits(root, value)
        request.root_required = root.required_traits
        request.root_forbidden = root.forbidden_traits
    elif name == 'same_subtree':
        suffixes = frozenset(part.strip() for part in value.split(','))
        if '' in suffixes:
            raise ValueError('only groups with a suffix can be named')
        request.same_subtree.append(suffixes)
    elif match := _GROUPED.fullmatch(name):
        kind, suffix = match[1], match[2] or ''
        _READERS[kind](request.group(suffix), value)
    else:
        raise ValueError('there is no such parameter')


def _limit(request: ResourceRequest, values: Sequence[str]) -> None:
    """Read a limit; if it is repeated, check the last and use the first.

    So does the service, with ``group_policy`` too. The API reference does not
    say that they may be repeated.
    """
    if not _LIMIT.fullmatch(values[-1]) or not values[0].isdecimal():
        raise ValueError('a limit is a whole number from 1 up')
    request.limit = int(values[0]) or None


def _group_policy(request: ResourceRequest, values: Sequence[str]) -> None:
    if values[-1] not in ('none', 'isolate'):
        raise ValueError('the policy is none or isolate')
    request.group_policy = values[0] or None


def _resources(group: RequestGroup, value: str) -> None:
    resources: dict[str, int] = {}
    for part in value.split(','):
        resource_class, colon, amount = part.partition(':')
        if not colon:
            raise ValueError('resources are written CLASS:AMOUNT')
        try:
            resources[resource_class] = int(amount)
        except ValueError:
            raise ValueError(f'{amount!r} is not an integer') from None
        if resources[resource_class] < 1:
            raise ValueError('an amount is 1 or more')
    group.resources = resources


def _traits(group: RequestGroup, value: str) -> None:
    one_of = value.startswith('in:')
    traits = [part.strip() for part in value.removeprefix('in:').split(',')]
    forbidden = {t.lstrip('!') for t in traits if t.startswith('!')}
    if not all((*traits, *forbidden)):
        raise ValueError('a trait has no name')
    if one_of and forbidden:
        raise ValueError('one of several traits cannot be a forbidden one')
    if one_of:
        group.any_traits.append(frozenset(traits))
        return
    group.forbidden_traits |= forbidden
    group.required_traits |= {t for t in traits if not t.startswith('!')}


def _aggregates(group: RequestGroup, value: str) -> None:
    uuids = value.removeprefix('!')
    if ',' in uuids and not uuids.startswith('in:'):
        raise ValueError('several aggregates are written in:UUID,UUID')
    choice = frozenset(uuids.removeprefix('in:').split(','))
    for uuid in choice:
        _uuid(uuid)
    if value.startswith('!'):
        group.forbidden_aggregates |= choice
    else:
        group.aggregates.append(choice)


def _in_tree(group: RequestGroup, value: str) -> None:
    group.in_tree = _uuid(value.strip())


def _uuid(value: str) -> str:
    if not uuidutils.is_uuid_like(value):
        raise ValueError(f'{value!r} is no uuid')
    return value


# What /resource_providers takes several of.
_REPEATED = ('required', 'member_of')
_ONCE = {'limit': _limit, 'group_policy': _group_policy}
_READERS = {
    'resources': _resources,
    'required': _traits,
    'member_of': _aggregates,
    'in_tree': _in_tree,
}


def _contradictions(request: ResourceRequest) -> list[str]:
    """Return what is wrong with parameters that are right one by one."""
    return [
        *_resourceless(request),
        *_subtrees(request),
        *_conflicts(request),
        *_policy(request),
    ]


def _resourceless(request: ResourceRequest) -> Iterator[str]:
    """Find groups that should ask for resources, and do not.

    A group without resources only makes sense as a member of
    ``same_subtree``, and one group has to ask for some.
    """
    if not any(group.resources for group in request.groups.values()):
        yield 'no group asks for resources'
        return
    related = frozenset().union(*request.same_subtree)
    for suffix, group in request.groups.items():
        if not group.resources and suffix not in related:
            yield (
                f'group {suffix!r} asks for no resources and is not in '
                'same_subtree'
            )


def _subtrees(request: ResourceRequest) -> Iterator[str]:
    """Find suffixes in ``same_subtree`` that no group has."""
    for suffix in sorted(frozenset().union(*request.same_subtree)):
        if suffix not in request.groups:
            yield f'same_subtree names {suffix!r}, which is no group'


def _conflicts(request: ResourceRequest) -> Iterator[str]:
    """Find traits that are required and forbidden by one group or root."""
    for trait in sorted(request.root_required & request.root_forbidden):
        yield f'root_required both requires and forbids {trait}'
    for suffix, group in request.groups.items():
        for trait in sorted(group.required_traits & group.forbidden_traits):
            yield f'required{suffix} both requires and forbids {trait}'
        for choice in group.any_traits:
            if choice <= group.forbidden_traits:
                traits = ', '.join(sorted(choice))
                yield f'required{suffix} forbids each one of {traits}'


def _policy(request: ResourceRequest) -> Iterator[str]:
    """Miss a ``group_policy`` with two or more groups with a suffix."""
    suffixed = [suffix for suffix in request.groups if suffix]
    if len(suffixed) > 1 and request.group_policy is None:
        yield (
            f'{len(suffixed)} groups with a suffix need group_policy, none or '
            'isolate'
        )
