# SPDX-License-Identifier: Apache-2.0
"""Reads the plans of Terraform and OpenTofu.

The format is that of ``terraform show -json PLAN``, `version 1
<https://developer.hashicorp.com/terraform/internals/json-format>`_. The
attributes are those of the `OpenStack provider
<https://registry.terraform.io/providers/terraform-provider-openstack/openstack>`_,
and so is what it does with them (``openstack/resource_openstack_*.go``): it
changes only what differs between ``before`` and ``after``, it adds the hosts
of a new aggregate before it sets the metadata, and it does not remove an
availability zone.
"""

from collections.abc import Callable, Iterator, Mapping
import dataclasses
import functools
from types import MappingProxyType
from typing import Any

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.aggregates.aggregate import zone_of
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.text import listed, quoted
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.effect.formats import planned
from isolate_aggregates_tools.effect.formats.documents import Part
from isolate_aggregates_tools.effect.formats.planned import (
    Item,
    Kept,
    Step,
    Unread,
)
from isolate_aggregates_tools.repairs import commands

_MAJOR = '1'

_IMAGE = 'openstack_images_image_v2'

# What happens to a resource, one after the other, by the actions of the plan.
_ACTIONS: Mapping[tuple[str, ...], tuple[str, ...]] = MappingProxyType(
    {
        ('no-op',): (),
        ('read',): (),
        ('forget',): (),
        ('create',): ('create',),
        ('update',): ('update',),
        ('delete',): ('delete',),
        ('delete', 'create'): ('delete', 'create'),
        ('create', 'delete'): ('create', 'delete'),
        ('create', 'forget'): ('create',),
        ('forget', 'create'): ('create',),
    }
)
# Actions that change nothing in a cloud.
_STILL = frozenset({'no-op', 'read', 'forget'})
# The types of services of which no decision of nova-scheduler depends here.
_ELSEWHERE = (
    'openstack_dns_',
    'openstack_keymanager_',
    'openstack_lb_',
    'openstack_networking_',
    'openstack_objectstorage_',
)
# Properties that Glance sets itself.
_OF_GLANCE = ('os_hash_', 'os_hidden', 'direct_url', 'stores', 'locations')


@dataclasses.dataclass(frozen=True)
class _Resource:
    """The planned change of a resource.

    :param unknown: Which values of ``after`` are known only after the apply.
    """

    address: str
    kind: str
    before: Part
    after: Part
    unknown: Part
    snapshot: Snapshot

    def is_unknown(self, name: str) -> bool:
        return _has_unknown(self.unknown.member(name))

    def late(self, name: str) -> Iterator[Unread]:
        """Yield a sentence if an attribute is known only after the apply."""
        value = self.unknown.member(name)
        if not _has_unknown(value):
            return
        what = name
        if isinstance(value.value, dict):
            keys = [k for k, v in value.mapping.items() if _has_unknown(v)]
            what = f'{name} {listed(map(quoted, keys), None)}'
        elif isinstance(value.value, list):
            what = f'a part of {name}'
        yield self.left_out(f'{what} is known only after the apply')

    def left_out(self, reason: str) -> Unread:
        return Unread(f'{self.address}: {reason}.')

    @property
    def has_same_name(self) -> bool:
        # Images may have equal names.
        return not self.differs('name') and self.kind != _IMAGE

    def differs(self, name: str) -> bool:
        return bool(
            self.before.member(name).value != self.after.member(name).value
        )

    def changed(self, name: str) -> dict[str, str | None]:
        """Return the changed values of a mapping; None for removed keys."""
        old, new = (
            part.member(name).texts for part in (self.before, self.after)
        )
        unknown = self.unknown.member(name)
        if unknown.value is True:
            return {}
        late = (
            {key for key, part in unknown.mapping.items() if part.value}
            if isinstance(unknown.value, dict)
            else set()
        )
        return {
            key: new.get(key)
            for key in sorted(old.keys() | new.keys())
            if old.get(key) != new.get(key) and key not in late
        }


def _has_unknown(part: Part) -> bool:
    if isinstance(part.value, dict):
        return any(map(_has_unknown, part.mapping.values()))
    if isinstance(part.value, list):
        return any(map(_has_unknown, part.items))
    return part.value is True


def items(document: Part, region: str | None) -> Iterator[Item]:
    """Yield the changes of a plan; those in other regions are not read.

    :raises ChangesFileError: if it is not a plan of a supported version.
    """
    version = document.member('format_version')
    if not version:
        document.fail(
            'is not a Terraform plan, because it has no format_version; write '
            'it with "terraform show -json PLAN"'
        )
    if version.text.partition('.')[0] != _MAJOR:
        version.fail(f'must be {_MAJOR}.x, not {version.text!r}')
    members = document.mapping
    if 'resource_changes' not in members and 'planned_values' not in members:
        document.fail(
            'is a Terraform state, not a plan; write the plan with "terraform '
            'plan -out PLAN" and "terraform show -json PLAN"'
        )
    if document.member('errored').value is True:
        document.fail('is incomplete, because "terraform plan" failed')
    managed = [
        change
        for change in document.member('resource_changes').items
        if change.member('mode').text != 'data'
    ]
    known = [c for c in managed if c.member('type').required_text in _KINDS]
    if managed and not known:
        document.fail(
            'has no resource that is read here; give a plan with resources of '
            f'the types {listed(_KINDS, None)}'
        )
    regions = {r for change in known for r in _regions(change)}
    for change in managed:
        address = change.member('address').text
        elsewhere = _regions(change) - {region}
        if change.member('type').text not in _KINDS:
            if not _is_still(change):
                yield planned.unread(
                    f'{address} is of a type that is not read.'
                )
        elif region and elsewhere:
            yield planned.unread(
                f'{address} is left out, because it is in region '
                f'{listed(map(quoted, elsewhere), None)}, not in '
                f'{quoted(region)}.'
            )
        else:
            yield functools.partial(_steps, change)
    if regions and not region:
        yield functools.partial(_in_regions, regions)


def _regions(change: Part) -> set[str]:
    """Return the regions that a resource changes."""
    planned_change = change.member('change')
    actions = {item.text for item in planned_change.member('actions').items}
    if actions <= _STILL:
        return set()
    parts = map(planned_change.member, ('before', 'after'))
    return {part.member('region').text for part in parts} - {''}


def _in_regions(regions: set[str], snapshot: Snapshot) -> Iterator[Step]:
    """Yield that the region of the cloud is not known."""
    names = listed(map(quoted, regions), None)
    if len(regions) > 1:
        yield Unread(
            f'The plan changes the regions {names}, but all changes are '
            'applied to the same cloud here; set region_name.'
        )
    else:
        yield Kept(
            f'whether {snapshot.origin} is region {names}, which the plan '
            'changes; set region_name.'
        )


def _is_still(change: Part) -> bool:
    """Return whether a resource of another type changes nothing here."""
    actions = change.member('change').member('actions').items
    return {item.text for item in actions} <= _STILL or change.member(
        'type'
    ).text.startswith(_ELSEWHERE)


def _steps(change: Part, snapshot: Snapshot) -> Iterator[Step]:
    """Yield the steps of a resource."""
    resource, actions = _resource(change, snapshot)
    if actions == ('create', 'delete') and resource.has_same_name:
        yield resource.left_out(
            'the change is left out, because the new one would be created '
            'before the old one with the same name is deleted, which Nova '
            'refuses'
        )
        return
    for action in actions:
        yield from _KINDS[resource.kind][action](resource)


def _resource(
    change: Part, snapshot: Snapshot
) -> tuple[_Resource, tuple[str, ...]]:
    planned_change = change.member('change')
    planned_actions = planned_change.member('actions')
    actions = tuple(item.text for item in planned_actions.items)
    if actions not in _ACTIONS:
        planned_actions.fail(
            f'has unknown actions: {", ".join(actions) or "none"}'
        )
    before, after = map(planned_change.member, ('before', 'after'))
    resource = _Resource(
        address=change.member('address').required_text,
        kind=change.member('type').text,
        before=before,
        after=after,
        unknown=planned_change.member('after_unknown'),
        snapshot=snapshot,
    )
    for action in _ACTIONS[actions]:
        if action != 'create' and not before:
            before.fail(f'is missing, but the action is {action}')
        if action != 'delete' and not after:
            after.fail(f'is missing, but the action is {action}')
    return resource, _ACTIONS[actions]


def _missing(resource: _Resource, kind: str) -> Unread:
    name = resource.before.member('name').text
    return resource.left_out(
        f'{kind} {quoted(name)} is not in {resource.snapshot.origin}, so its '
        'change is left out'
    )


def _new_name(
    resource: _Resource, kind: str, names: Iterator[str]
) -> tuple[str, list[Unread]]:
    """Return the name of a new object; empty if it cannot be created."""
    if resource.is_unknown('name'):
        return '', [
            resource.left_out(
                f'the {kind} is left out, because its name is known only '
                'after the apply'
            )
        ]
    name = resource.after.member('name').required_text
    is_own = resource.before.member('name').text == name
    if name in names and not is_own:
        return '', [
            resource.left_out(
                f'{kind} {quoted(name)} is left out, because it exists '
                f'already in {resource.snapshot.origin}'
            )
        ]
    return name, []


# Host aggregates.


def _aggregate(resource: _Resource) -> Aggregate | None:
    return planned.existing(
        resource.snapshot.aggregates,
        resource.before.member('id').text,
        resource.before.member('name').required_text,
    )


def _create_aggregate(resource: _Resource) -> Iterator[Step]:
    name, problems = _new_name(
        resource, 'aggregate', (a.name for a in resource.snapshot.aggregates)
    )
    yield from problems
    if not name:
        return
    after = resource.after
    aggregate = Aggregate('', name)
    yield from resource.late('zone')
    yield commands.create_aggregate(name, after.member('zone').text or None)
    yield from resource.late('hosts')
    yield from commands.add_hosts(aggregate, _hosts(after))
    yield from resource.late('metadata')
    yield from planned.changed(
        resource.address, aggregate, after.member('metadata').texts
    )


def _update_aggregate(resource: _Resource) -> Iterator[Step]:
    aggregate = _aggregate(resource)
    if not aggregate:
        yield _missing(resource, 'aggregate')
        return
    yield from resource.late('zone')
    zone = resource.after.member('zone').text
    if resource.differs('zone') and not resource.is_unknown('zone'):
        if zone and zone != zone_of(aggregate):
            yield commands.set_zone(aggregate, zone)
        elif not zone and zone_of(aggregate):
            yield Kept(
                f'{resource.address}: the provider does not remove an '
                'availability zone, so '
                f'aggregate {quoted(aggregate.name)} stays in '
                f'{quoted(zone_of(aggregate) or "")}.'
            )
    yield from resource.late('hosts')
    before, after = _hosts(resource.before), _hosts(resource.after)
    if not resource.is_unknown('hosts'):
        yield from commands.remove_hosts(
            aggregate, aggregate.hosts & (before - after)
        )
    yield from commands.add_hosts(aggregate, after - before - aggregate.hosts)
    yield from resource.late('metadata')
    yield from planned.changed(
        resource.address, aggregate, resource.changed('metadata')
    )
    yield from resource.late('name')
    name = resource.after.member('name').text
    if name and resource.differs('name') and name != aggregate.name:
        yield commands.rename_aggregate(aggregate, name)


def _delete_aggregate(resource: _Resource) -> Iterator[Step]:
    aggregate = _aggregate(resource)
    if not aggregate:
        yield _missing(resource, 'aggregate')
        return
    hosts = _hosts(resource.before)
    others = aggregate.hosts - hosts
    yield from commands.remove_hosts(aggregate, aggregate.hosts & hosts)
    if others:
        yield resource.left_out(
            f'aggregate {quoted(aggregate.name)} is not deleted, because Nova '
            'refuses to delete one with hosts, and the plan does not remove '
            f'{listed(map(quoted, others))}'
        )
    else:
        yield commands.delete_aggregate(aggregate)


def _hosts(part: Part) -> frozenset[str]:
    return frozenset(
        item.required_text for item in part.member('hosts').items if item
    )


# Flavors.


def _flavor(resource: _Resource) -> Flavor | None:
    before = resource.before
    return planned.existing(
        resource.snapshot.flavors,
        before.member('id').text or before.member('flavor_id').text,
        before.member('name').required_text,
    )


def _create_flavor(resource: _Resource) -> Iterator[Step]:
    name, problems = _new_name(
        resource, 'flavor', (f.name for f in resource.snapshot.flavors)
    )
    yield from problems
    if not name:
        return
    after = resource.after
    sizes = ('ram', 'vcpus', 'disk', 'ephemeral', 'swap')
    late = [size for size in sizes if resource.is_unknown(size)]
    if late:
        yield resource.left_out(
            f'flavor {quoted(name)} is left out, because {listed(late)} is '
            'known only after the apply'
        )
        return
    yield from resource.late('extra_specs')
    specs, problem_specs = planned.expressible(
        f'{resource.address}: extra spec', after.member('extra_specs').texts
    )
    yield from problem_specs
    flavor = Flavor(
        name,
        after.member('flavor_id').text,
        extra_specs=specs,
        # The provider makes private flavors by default.
        is_public=after.member('is_public').value is True,
    )
    amounts: dict[str, Any] = {n: after.member(n).integer for n in sizes}
    yield from commands.create_flavor(dataclasses.replace(flavor, **amounts))


def _update_flavor(resource: _Resource) -> Iterator[Step]:
    flavor = _flavor(resource)
    if not flavor:
        yield _missing(resource, 'flavor')
        return
    yield from resource.late('extra_specs')
    yield from planned.changed(
        resource.address, flavor, resource.changed('extra_specs')
    )


def _delete_flavor(resource: _Resource) -> Iterator[Step]:
    flavor = _flavor(resource)
    if flavor:
        yield from commands.delete_flavor(flavor)
    else:
        yield _missing(resource, 'flavor')


# Images.


def _image(resource: _Resource) -> Image | None:
    return planned.existing(
        resource.snapshot.images,
        resource.before.member('id').text,
        resource.before.member('name').required_text,
    )


def _create_image(resource: _Resource) -> Iterator[Step]:
    # Several images may have the same name.
    name, problems = _new_name(resource, 'image', iter(()))
    yield from problems
    if not name:
        return
    after = resource.after
    yield from resource.late('properties')
    properties, problem_properties = planned.expressible(
        f'{resource.address}: property', after.member('properties').texts
    )
    yield from problem_properties
    yield commands.create_image(
        Image(
            name,
            after.member('image_id').text,
            properties,
            visibility=_visibility(after),
            disk_format=after.member('disk_format').text or None,
            min_ram=after.member('min_ram_mb').integer,
            min_disk=after.member('min_disk_gb').integer,
        )
    )


def _update_image(resource: _Resource) -> Iterator[Step]:
    image = _image(resource)
    if not image:
        yield _missing(resource, 'image')
        return
    yield from resource.late('properties')
    yield from planned.changed(
        resource.address,
        image,
        {
            key: value
            for key, value in resource.changed('properties').items()
            if not key.startswith(_OF_GLANCE)
        },
    )
    yield from resource.late('visibility')
    visibility = _visibility(resource.after)
    if (
        visibility
        and resource.differs('visibility')
        and visibility != image.visibility
    ):
        yield commands.set_visibility(image, visibility)


def _delete_image(resource: _Resource) -> Iterator[Step]:
    image = _image(resource)
    if image:
        yield commands.delete_image(image)
    else:
        yield _missing(resource, 'image')


def _visibility(part: Part) -> str | None:
    visibility = part.member('visibility')
    if visibility.text and visibility.text not in commands.VISIBILITIES:
        visibility.fail(
            f'must be one of {", ".join(commands.VISIBILITIES)}, not '
            f'{visibility.text!r}'
        )
    return visibility.text or None


_Changes = Mapping[str, Callable[[_Resource], Iterator[Step]]]

_KINDS: Mapping[str, _Changes] = MappingProxyType(
    {
        'openstack_compute_aggregate_v2': {
            'create': _create_aggregate,
            'update': _update_aggregate,
            'delete': _delete_aggregate,
        },
        'openstack_compute_flavor_v2': {
            'create': _create_flavor,
            'update': _update_flavor,
            'delete': _delete_flavor,
        },
        _IMAGE: {
            'create': _create_image,
            'update': _update_image,
            'delete': _delete_image,
        },
    }
)
