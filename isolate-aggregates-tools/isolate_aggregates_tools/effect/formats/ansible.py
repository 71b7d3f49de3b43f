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
availability zone, which it cannot set, and ``hosts`` replaces all hosts unless
``purge_hosts`` is false. The hosts of a new aggregate are added before its
metadata is set.
"""

from collections.abc import Iterator
import dataclasses
import functools
import re
from types import MappingProxyType
from typing import Any

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.text import listed, quoted
from isolate_aggregates_tools.advice import commands
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.effect.formats import planned
from isolate_aggregates_tools.effect.formats.documents import Part
from isolate_aggregates_tools.effect.formats.planned import Item, Step, Unread

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
# Arguments of all modules, which say how the cloud is reached.
_OF_CONNECTION = (
    *('api_timeout', 'auth', 'auth_type', 'ca_cert', 'client_cert'),
    *('client_key', 'cloud', 'interface', 'sdk_log_level', 'sdk_log_path'),
    *('timeout', 'validate_certs', 'wait'),
)
# What is read of plays, or changes nothing here.
_OF_PLAY = (
    *('any_errors_fatal', 'become', 'collections', 'connection'),
    *('environment', 'gather_facts', 'hosts', 'name', 'no_log', 'post_tasks'),
    *('pre_tasks', 'roles', 'tags', 'tasks', 'vars'),
)
# What is read of tasks, or changes nothing here, beside their module.
_OF_TASK = (
    *('become', 'delegate_to', 'environment', 'loop', 'name', 'no_log'),
    *('register', 'run_once', 'tags', 'with_items'),
)
# Whether a role runs at all.
_CONDITIONS = ('when',)
# Modules that change nothing.
_STILL = ('ansible.builtin.debug', 'debug')
_MODULES = ('openstack.cloud.host_aggregate', 'os_nova_host_aggregate')
# "{{ variable }}", "{{ item }}" and "{{ item.key | default(omit) }}".
_NAMED = re.compile(r'\{\{\s*(\w+)\s*\}\}')
_ITEM = re.compile(r'\{\{\s*item(?:\.(\w+))?\s*(\|\s*default\(omit\))?\s*\}\}')
_OMITTED = object()


def items(document: Part, region: str | None) -> Iterator[Item]:
    """Yield the aggregates that the variables or the plays describe.

    :raises ChangesFileError: if there are none.
    """
    if isinstance(document.value, list):
        parts = [*_of_plays(document, region)]
        if all(isinstance(part, str) for part in parts):
            document.fail(
                f'has no list {VARIABLE} and no task of {_MODULES[0]}; give a '
                'file with that variable'
            )
    else:
        if not document.member(VARIABLE):
            document.fail(f'has no list {VARIABLE}')
        others = [key for key in document.mapping if key != VARIABLE]
        parts = [
            *(f'Variable {quoted(key)} is not read.' for key in others),
            document.member(VARIABLE),
        ]
    for part in parts:
        if isinstance(part, str):
            yield planned.unread(part)
        elif isinstance(part, _LeftOut):
            yield planned.unread(part.sentence)
        elif _is_template(part.value):
            yield planned.unread(
                f'{part.place} is a template, so all of it is left out.'
            )
        else:
            for item in part.items:
                yield functools.partial(_aggregate, item)


@dataclasses.dataclass(frozen=True)
class _LeftOut:
    """A list of aggregates that is left out.

    :param sentence: Why.
    """

    sentence: str


# A list of aggregates, or a sentence about what is not read.
_Found = Part | _LeftOut | str


def _of_plays(plays: Part, region: str | None) -> Iterator[_Found]:
    """Yield the lists of aggregates of plays, in their order."""
    for play in plays.items:
        for key, part in play.mapping.items():
            if key not in _OF_PLAY or _is_never(key, part):
                yield f'{part.place} is not read.'
        variables = play.member('vars')
        if variables.member(VARIABLE):
            yield variables.member(VARIABLE)
        yield from _of_tasks(play.member('pre_tasks'), variables, region)
        for role in play.member('roles').items:
            yield from _of_role(role)
        for tasks in ('tasks', 'post_tasks'):
            yield from _of_tasks(play.member(tasks), variables, region)


def _of_role(role: Part) -> Iterator[_Found]:
    """Yield the list of aggregates of a role, unless it is another role."""
    if not _is_of(role, dict):
        if not str(role.value).endswith(VARIABLE):
            yield f'{role.place} is not read: role {quoted(str(role.value))}.'
        return
    name = role.member('role').text or role.member('name').text
    if not name.endswith(VARIABLE):
        yield f'{role.place} is not read: role {quoted(name)}.'
    lists = [
        place.member(VARIABLE)
        for place in (role, role.member('vars'))
        if place.member(VARIABLE)
    ]
    unread = [key for key in _CONDITIONS if role.member(key)]
    for found in lists:
        if unread:
            yield _LeftOut(
                f'{found.place} is left out, because {listed(unread)} of its '
                'role is not read.'
            )
        else:
            yield found


def _of_tasks(
    tasks: Part, variables: Part, region: str | None
) -> Iterator[_Found]:
    for task in tasks.items:
        yield from _of_task(task, variables, region)


def _of_task(
    task: Part, variables: Part, region: str | None
) -> Iterator[_Found]:
    """Yield the list of aggregates that a task of the module sets up."""
    keys = [
        key
        for key, part in task.mapping.items()
        if key not in _OF_TASK or _is_never(key, part)
    ]
    module = next((key for key in _MODULES if task.member(key)), None)
    if task.member('block'):
        unread = [key for key in keys if key not in ('block', 'always')]
        others = [key for key in unread if key != 'rescue']
        if others:
            yield (
                f'{task.place} is left out, because {listed(others)} of the '
                'block is not read.'
            )
            return
        if unread:
            yield f'{task.member("rescue").place} is not read.'
        for block in ('block', 'always'):
            yield from _of_tasks(task.member(block), variables, region)
        return
    if not module:
        if not set(keys) <= set(_STILL):
            yield f'{task.place} is not read: {listed(keys, None)}.'
        return
    arguments = task.member(module)
    keys.remove(module)
    if keys:
        yield _LeftOut(
            f'{arguments.place} is left out, because {listed(keys)} of the '
            'task is not read.'
        )
        return
    if not _is_of(arguments, dict):
        yield _LeftOut(f'{arguments.place} is not read: it is no mapping.')
        return
    others = [
        key
        for key, part in arguments.mapping.items()
        if key not in (*_ARGUMENTS, *_OF_CONNECTION)
        and not (key == 'region_name' and region and part.value == region)
    ]
    if others:
        yield _LeftOut(
            f'{arguments.place} is left out, because its {listed(others)} is '
            'not read.'
        )
        return
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


def _is_never(key: str, part: Part) -> bool:
    """Return whether something runs only if it is asked for by a tag."""
    return key == 'tags' and 'never' in str(part.value)


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
        yield Unread(
            f'{item.place} is left out, because its name is a template.'
        )
        return
    name = item.member('name').required_text
    aggregate = planned.existing(snapshot.aggregates, name, name)
    subject = f'Aggregate {quoted(name)}'
    state = item.member('state')
    if _is_template(state.value):
        yield Unread(f'{subject} is left out, because state is a template.')
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
        yield Unread(f'{subject}: {_ZONE} is a template.')
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
        yield Unread(f'{subject}: hosts is a template.')
        return
    if isinstance(part.value, str):
        # Ansible splits a text into a list.
        names = [name.strip() for name in part.value.split(',')]
    else:
        names = [host.required_text for host in part.items]
    hosts = {name for name in names if not _is_template(name)} - {''}
    has_template = any(map(_is_template, names))
    if has_template:
        yield Unread(
            f'{subject}: some hosts are templates, so none is removed.'
        )
    yield from commands.add_hosts(aggregate, hosts - aggregate.hosts)
    purge = item.member('purge_hosts')
    if _is_template(purge.value):
        yield Unread(
            f'{subject}: purge_hosts is a template, so no host is removed.'
        )
    elif _boolean(purge, default=True) and not has_template:
        yield from commands.remove_hosts(aggregate, aggregate.hosts - hosts)


def _metadata(
    item: Part, subject: str, aggregate: Aggregate
) -> Iterator[Step]:
    part = item.member('metadata')
    if _is_template(part.value):
        yield Unread(f'{subject}: metadata is a template.')
        return
    if not part:
        return
    has_template = any(map(_is_template, part.mapping))
    if has_template:
        yield Unread(
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
            yield Unread(f'{subject}: metadata {quoted(key)} is a template.')
            values.pop(key, None)
        else:
            # Nova refuses any other value; null removes the key.
            values[key] = value.text if value else None
    # The module drops it.
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
