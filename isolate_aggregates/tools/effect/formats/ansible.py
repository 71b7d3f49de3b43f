# SPDX-License-Identifier: Apache-2.0
"""Reads the host aggregates that Ansible sets up.

A file has variables or plays. In plays, those of the role and tasks of the
module count.
The variable ``os_host_aggregates`` is a list, as for the `role of StackHPC
<https://github.com/stackhpc/ansible-collection-openstack/tree/main/roles/os_host_aggregates>`_.
Its items have the arguments of the `module host_aggregate
<https://docs.ansible.com/ansible/latest/collections/openstack/cloud/host_aggregate_module.html>`_
of ``openstack.cloud``, and what happens is what this module does: an argument
that is missing changes nothing, ``metadata`` replaces all metadata but the
availability zone, and ``hosts`` replaces all hosts unless ``purge_hosts`` is
false. The hosts of a new aggregate are added before its metadata is set.
"""

from collections.abc import Iterator
import re
from types import MappingProxyType
from typing import Any

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.text import quoted
from isolate_aggregates.tools.advice import commands
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.effect.formats import planned
from isolate_aggregates.tools.effect.formats.documents import Part
from isolate_aggregates.tools.effect.formats.planned import Step, Unknown

VARIABLE = 'os_host_aggregates'

_ZONE = 'availability_zone'
# Texts that Ansible takes as true or false, in lower case.
_BOOLEANS = MappingProxyType(
    {
        **dict.fromkeys(('yes', 'on', '1', 'true', 'y', 't', '1.0'), True),
        **dict.fromkeys(('no', 'off', '0', 'false', 'n', 'f', '0.0'), False),
    }
)
_ARGUMENTS = (
    'name', _ZONE, 'hosts', 'purge_hosts', 'metadata', 'state'
)  # fmt: skip
_MODULES = ('openstack.cloud.host_aggregate', 'os_nova_host_aggregate')
# "{{ variable }}", "{{ item }}" and "{{ item.key | default(omit) }}".
_NAMED = re.compile(r'\{\{\s*(\w+)\s*\}\}')
_ITEM = re.compile(r'\{\{\s*item(?:\.(\w+))?\s*(\|\s*default\(omit\))?\s*\}\}')
_OMITTED = object()


def steps(document: Part, snapshot: Snapshot) -> Iterator[Step]:
    """Yield the changes that the variables or the plays describe.

    :raises ChangesFileError: if there are none.
    """
    if isinstance(document.value, list):
        lists = [*_of_plays(document)]
        if not lists:
            document.fail(
                f'has no list {VARIABLE} and no task of {_MODULES[0]}; give a '
                'file with that variable'
            )
    else:
        lists = [document.member(VARIABLE)]
        if not lists[0]:
            document.fail(f'has no list {VARIABLE}')
    for aggregates in lists:
        if _is_template(aggregates.value):
            yield Unknown(
                f'{aggregates.place} is a template, so all of it is left out.'
            )
            continue
        for item in aggregates.items:
            yield from _aggregate(item, snapshot)


def _of_plays(plays: Part) -> Iterator[Part]:
    """Yield the lists of aggregates of plays, in their order."""
    for play in plays.items:
        variables = play.member('vars')
        roles = [
            role for role in play.member('roles').items if _is_of(role, dict)
        ]
        for place in (variables, *roles, *(r.member('vars') for r in roles)):
            if place.member(VARIABLE):
                yield place.member(VARIABLE)
        for tasks in ('pre_tasks', 'tasks', 'post_tasks'):
            for task in play.member(tasks).items:
                yield from _of_task(task, variables)


def _of_task(task: Part, variables: Part) -> Iterator[Part]:
    """Yield the list of aggregates that a task of the module sets up."""
    for block in ('block', 'rescue', 'always'):
        for inner in task.member(block).items:
            yield from _of_task(inner, variables)
    for module in _MODULES:
        arguments = task.member(module)
        if not arguments:
            continue
        loop = task.member('loop') or task.member('with_items')
        items: list[Any] = [{}]
        if loop:
            named = _NAMED.fullmatch(str(loop.value))
            values = variables.member(named[1]) if named else loop
            if not _is_of(values, list):
                loop.fail(
                    'is not a list, and no variable of its play is one by '
                    f'this name; give a file with the list as {VARIABLE}'
                )
            items = [item.value for item in values.items]
        yield Part(
            [
                {
                    key: value
                    for key, part in arguments.mapping.items()
                    if key in _ARGUMENTS
                    and (value := _looped(part.value, item)) is not _OMITTED
                }
                for item in items
            ],
            task.path,
            arguments.place,
        )


def _looped(value: Any, item: Any) -> Any:
    """Return a value of a task for an item of its loop.

    Any other template stays one.
    """
    found = _ITEM.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return value
    key, is_omitted = found.groups()
    if key is None:
        return item
    if isinstance(item, dict) and key in item:
        return item[key]
    return _OMITTED if is_omitted else value


def _is_of(part: Part, kind: type) -> bool:
    return isinstance(part.value, kind)


def _is_template(value: object) -> bool:
    return isinstance(value, str) and ('{{' in value or '{%' in value)


def _aggregate(item: Part, snapshot: Snapshot) -> Iterator[Step]:
    for key, part in item.mapping.items():
        if key not in _ARGUMENTS:
            part.fail('is not an argument of openstack.cloud.host_aggregate')
    if _is_template(item.member('name').value):
        yield Unknown(
            f'{item.place} is left out, because its name is a template.'
        )
        return
    name = item.member('name').required_text
    aggregate = planned.existing(snapshot.aggregates, name, name)
    subject = f'Aggregate {quoted(name)}'
    state = item.member('state')
    if _is_template(state.value):
        yield Unknown(f'{subject} is left out, because state is a template.')
    elif state.text in ('', 'present'):
        yield from _present(item, subject, name, aggregate)
    elif state.text != 'absent':
        state.fail(f'must be present or absent, not {state.text!r}')
    elif aggregate:
        yield from commands.remove_hosts(aggregate, aggregate.hosts)
        yield commands.delete_aggregate(aggregate)


def _present(
    item: Part, subject: str, name: str, aggregate: Aggregate | None
) -> Iterator[Step]:
    zone = item.member(_ZONE)
    zone_name = None
    if _is_template(zone.value):
        yield Unknown(f'{subject}: {_ZONE} is a template.')
    elif zone:
        zone_name = zone.text
    if aggregate is None:
        aggregate = Aggregate('', name)
        yield commands.create_aggregate(name, zone_name)
        yield from _hosts(item, subject, aggregate)
        yield from _metadata(item, subject, aggregate)
        return
    if zone_name is not None and zone_name != zone_of(aggregate):
        yield commands.set_zone(aggregate, zone_name)
    yield from _metadata(item, subject, aggregate)
    yield from _hosts(item, subject, aggregate)


def _hosts(item: Part, subject: str, aggregate: Aggregate) -> Iterator[Step]:
    part = item.member('hosts')
    if not part:
        return
    if _is_template(part.value):
        yield Unknown(f'{subject}: hosts is a template.')
        return
    if isinstance(part.value, str):
        # Ansible splits a text into a list.
        names = [name.strip() for name in part.value.split(',')]
    else:
        names = [host.required_text for host in part.items]
    hosts = {name for name in names if not _is_template(name)} - {''}
    has_template = any(map(_is_template, names))
    if has_template:
        yield Unknown(
            f'{subject}: some hosts are templates, so none is removed.'
        )
    yield from commands.add_hosts(aggregate, hosts - aggregate.hosts)
    purge = item.member('purge_hosts')
    if _is_template(purge.value):
        yield Unknown(
            f'{subject}: purge_hosts is a template, so no host is removed.'
        )
    elif _boolean(purge, default=True) and not has_template:
        yield from commands.remove_hosts(aggregate, aggregate.hosts - hosts)


def _metadata(
    item: Part, subject: str, aggregate: Aggregate
) -> Iterator[Step]:
    part = item.member('metadata')
    if _is_template(part.value):
        yield Unknown(f'{subject}: metadata is a template.')
        return
    if not part:
        return
    has_template = any(map(_is_template, part.mapping))
    if has_template:
        yield Unknown(
            f'{subject}: some keys of metadata are templates, so none is '
            'removed.'
        )
    values: dict[str, str | None] = (
        {} if has_template else dict.fromkeys(aggregate.metadata)
    )
    for key, value in part.mapping.items():
        if _is_template(key):
            continue
        if _is_template(value.value):
            yield Unknown(f'{subject}: metadata {quoted(key)} is a template.')
            values.pop(key, None)
        else:
            # Nova refuses any other value; null removes the key.
            values[key] = value.text if value else None
    if _ZONE not in part.mapping:
        values.pop(_ZONE, None)
    yield from planned.changed(subject, aggregate, values)


def _boolean(part: Part, default: bool) -> bool:
    if not part:
        return default
    if isinstance(part.value, bool):
        return part.value
    value = _BOOLEANS.get(str(part.value).lower())
    if value is None:
        part.fail('must be true or false')
    return value
