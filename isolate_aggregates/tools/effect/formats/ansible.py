# SPDX-License-Identifier: Apache-2.0
"""Reads the host aggregates that Ansible sets up.

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
from types import MappingProxyType

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


def steps(document: Part, snapshot: Snapshot) -> Iterator[Step]:
    """Yield the changes that the variables describe.

    :raises ChangesFileError: if the file has no such variable.
    """
    aggregates = document.member(VARIABLE)
    if not aggregates:
        document.fail(f'has no list {VARIABLE}')
    if _is_template(aggregates.value):
        yield Unknown(f'{VARIABLE} is a template, so all of it is left out.')
        return
    for item in aggregates.items:
        yield from _aggregate(item, snapshot)


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
    zone_name = ''
    if _is_template(zone.value):
        yield Unknown(f'{subject}: {_ZONE} is a template.')
    else:
        zone_name = zone.text
    if aggregate is None:
        aggregate = Aggregate('', name)
        yield commands.create_aggregate(name, zone_name)
        yield from _hosts(item, subject, aggregate)
        yield from _metadata(item, subject, aggregate)
        return
    if zone_name and zone_name != zone_of(aggregate):
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
    values.pop(_ZONE, None)
    yield from planned.changed_tags(subject, aggregate, values)


def _boolean(part: Part, default: bool) -> bool:
    if not part:
        return default
    if isinstance(part.value, bool):
        return part.value
    value = _BOOLEANS.get(str(part.value).lower())
    if value is None:
        part.fail('must be true or false')
    return value
