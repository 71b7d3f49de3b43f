# SPDX-License-Identifier: Apache-2.0
"""Converts a snapshot to the document of a cloud file."""

from collections.abc import Mapping
from typing import Any
import uuid

from isolate_aggregates.derived import derived_uuid
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.cloud.file import placing, reservation_records
from isolate_aggregates_tools.cloud.file.document import VERSION, booted
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import Port, all_hints
from isolate_aggregates_tools.placement import names
from isolate_aggregates_tools.placement.provider import Provider


def document(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as the document of a cloud file.

    Reading the document returns an equal snapshot, except for its origin and
    for aggregates that Placement writes as Nova never does, such as in upper
    case: these get a uuid of their own, as files may have any spelling.
    """
    children: dict[str | None, list[Provider]] = {}
    for provider in snapshot.providers:
        children.setdefault(provider.parent, []).append(provider)
    settings: dict[str, dict[str, object]] = {}
    for (group, option), value in snapshot.settings.items():
        settings.setdefault(group, {})[option] = value
    return {
        'version': VERSION,
        'settings': settings,
        **_without_empty(
            # A newer Placement may have standard traits that no file can have.
            traits=[
                trait
                for trait in sorted(snapshot.traits)
                if not names.wrong_trait(trait)
            ],
            resource_classes=sorted(snapshot.resource_classes),
        ),
        **_without_empty(
            domains=[
                {
                    'id': each,
                    'projects': None if ids is None else sorted(ids),
                }
                for each, ids in sorted(snapshot.domains.items())
            ],
        ),
        **_keystone(snapshot),
        # All memberships are written explicitly, as the mirror in the live
        # cloud may be incomplete.
        'mirror_host_aggregates': False,
        'aggregates': [
            _without_empty(
                name=a.name,
                uuid=a.uuid,
                id=a.id,
                availability_zone=a.availability_zone,
                metadata=dict(sorted(a.metadata.items())),
                hosts=sorted(a.hosts),
            )
            for a in snapshot.aggregates
        ],
        'placement_aggregates': [
            {'name': name, 'uuid': key}
            for key, name in {
                **snapshot.placement_aggregates,
                **_odd_aggregates(snapshot),
            }.items()
        ],
        'providers': [
            _tree_document(root, children) for root in children.get(None, [])
        ],
        'flavors': [_flavor(flavor) for flavor in snapshot.flavors],
        'images': [
            {'name': i.name}
            | _without_empty(
                id=i.id,
                owner=i.owner,
                visibility=i.visibility,
                disk_format=i.disk_format,
                min_ram=i.min_ram,
                min_disk=i.min_disk,
                size=i.size,
                properties=dict(sorted(i.properties.items())),
            )
            for i in snapshot.images
        ],
        **reservation_records.document(
            snapshot.reservations, snapshot.flavors, _flavor
        ),
        **_servers(snapshot),
        **placing.document(snapshot),
    }


def _keystone(snapshot: Snapshot) -> dict[str, Any]:
    known = snapshot.keystone
    if known is None:
        return {}
    return {
        'keystone': {
            'domains': [
                {'id': key, 'name': name}
                for key, name in sorted(known.domains.items())
            ],
            'projects': [vars(project) for project in known.projects],
        }
    }


def _flavor(flavor: Flavor) -> dict[str, Any]:
    return _without_empty(
        name=flavor.name,
        id=flavor.id,
        vcpus=flavor.vcpus,
        ram=flavor.ram,
        disk=flavor.disk,
        ephemeral=flavor.ephemeral,
        swap=flavor.swap,
        extra_specs=dict(sorted(flavor.extra_specs.items())),
        projects=sorted(flavor.projects),
    ) | ({} if flavor.is_public else {'is_public': False})


def _servers(snapshot: Snapshot) -> dict[str, Any]:
    if snapshot.servers is None:
        return {}
    present = {f.name: booted(f) for f in snapshot.flavors}
    unknown_hints = (
        {} if snapshot.servers.hints_known else {'scheduler_hints': None}
    )
    return {
        'servers': [
            {
                'id': server.id,
                'project': server.project_id,
                'status': server.status,
                'flavor': server.flavor
                and (
                    server.flavor.name
                    if server.flavor == present.get(server.flavor.name)
                    else _flavor(server.flavor)
                ),
            }
            | unknown_hints
            | ({} if server.zone_known else {'availability_zone': None})
            | _without_empty(
                name=server.name,
                host=server.host,
                image=server.image_id,
                scheduler_hints=all_hints(server),
                availability_zone=server.availability_zone,
            )
            | (
                {}
                if server.image_properties is None
                else {
                    'image_properties': dict(
                        sorted(server.image_properties.items())
                    )
                }
            )
            | (
                {}
                if server.ports is None
                else {'ports': [_port(port) for port in server.ports]}
            )
            | (
                {}
                if server.has_shares is None
                else {'shares': server.has_shares}
            )
            for server in snapshot.servers.placed
        ],
    }


def _port(port: Port) -> dict[str, Any]:
    return {'id': port.id} | _without_empty(
        remote_managed=port.remote_managed,
        accelerator=port.accelerator,
        device_profile=port.device_profile,
        groups=[
            {'id': group.id, 'resources': dict(group.resources)}
            | _without_empty(traits=sorted(group.required_traits))
            for group in port.groups
        ],
        same_subtree=sorted(port.same_subtree),
        segments=list(port.segments or ()),
    )


def _tree_document(
    provider: Provider, children: Mapping[str | None, list[Provider]]
) -> dict[str, Any]:
    document = _without_empty(
        name=provider.name,
        uuid=provider.uuid,
        inventories={
            resource_class: vars(inventory)
            for resource_class, inventory in sorted(
                provider.inventories.items()
            )
        },
        usages=dict(sorted(provider.usages.items())),
        traits=sorted(provider.traits),
        aggregates=sorted(map(_aggregate, provider.aggregates)),
        children=[
            _tree_document(child, children)
            for child in children.get(provider.uuid, [])
        ],
    )
    if provider.parent is None:
        document['host'] = provider.host
    return document


def _odd_aggregates(snapshot: Snapshot) -> dict[str, str]:
    """Return the aggregates that get another uuid, with it."""
    found = sorted(
        frozenset().union(*(p.aggregates for p in snapshot.providers))
    )
    return {
        _aggregate(each): each for each in found if _aggregate(each) != each
    }


def _aggregate(spelling: str) -> str:
    """Return the uuid that an aggregate of Placement has in the file."""
    if str(uuid.UUID(spelling)) == spelling:
        return spelling
    return derived_uuid('aggregate of Placement', spelling)


def _without_empty(**fields: Any) -> dict[str, Any]:
    """Leave out empty values, which are the defaults of a cloud file."""
    return {
        key: value
        for key, value in fields.items()
        if value not in (None, 0, [], {})
    }
