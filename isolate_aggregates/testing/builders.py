# SPDX-License-Identifier: Apache-2.0
"""Test data for filters.

Ids and uuids are derived from names, as in a cloud file, so that they are the
same in each run. Use :func:`dataclasses.replace` to set other fields.
"""

from collections.abc import Iterable, Mapping
import uuid as uuids

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.derived import derived_uuid
from isolate_aggregates.request import ComputeHost, Flavor, Image
from isolate_aggregates.request.plain import PlainRequest


def canonical_uuid(what: str, uuid: str) -> str:
    """Return a uuid in the form in which services return it.

    :param what: What has it, for the message.
    :param uuid: The uuid.
    :raises ValueError: if it is no uuid.
    """
    try:
        return str(uuids.UUID(uuid))
    except ValueError:
        raise ValueError(f'{what}: {uuid!r} is not a uuid') from None


def make_aggregate(
    name: str,
    metadata: Mapping[str, str] | None = None,
    hosts: Iterable[str] = (),
    *,
    uuid: str | None = None,
    id: int | None = None,
    availability_zone: str | None = None,
) -> Aggregate:
    """Return a host aggregate.

    :param name: Its name.
    :param metadata: Its metadata.
    :param hosts: The names of the compute services in it.
    :param uuid: Its uuid; None to derive one from the name.
    :param id: Its numeric id in Nova.
    :param availability_zone: Its availability zone.
    :raises ValueError: if the uuid is invalid.
    """
    return Aggregate(
        uuid=derived_uuid('aggregate', name)
        if uuid is None
        else canonical_uuid(f'aggregate {name}', uuid),
        name=name,
        metadata=dict(metadata or {}),
        hosts=frozenset(hosts),
        id=id,
        availability_zone=availability_zone,
    )


def make_flavor(
    name: str = 'm1.small',
    extra_specs: Mapping[str, str] | None = None,
    *,
    vcpus: int = 1,
    ram: int = 2048,
    disk: int = 20,
) -> Flavor:
    """Return a flavor.

    :param name: Its name.
    :param extra_specs: Its extra specs.
    :param vcpus: Number of virtual CPUs.
    :param ram: Memory in MiB.
    :param disk: Root disk in GiB.
    """
    return Flavor(
        name=name,
        id=derived_uuid('flavor', name),
        vcpus=vcpus,
        ram=ram,
        disk=disk,
        extra_specs=dict(extra_specs or {}),
    )


def make_image(
    name: str = 'cirros',
    properties: Mapping[str, str] | None = None,
    *,
    owner: str | None = None,
    visibility: str = 'public',
) -> Image:
    """Return an image.

    :param name: Its name.
    :param properties: Its custom properties.
    :param owner: The id of the project that owns it.
    :param visibility: Its visibility.
    """
    return Image(
        name=name,
        id=derived_uuid('image', name),
        properties=dict(properties or {}),
        owner=owner,
        visibility=visibility,
    )


def make_request(
    flavor: Flavor | None = None,
    image: Image | None = None,
    *,
    project_id: str | None = 'demo',
    scheduler_hints: Mapping[str, str | Iterable[str]] | None = None,
    requested_host: ComputeHost | None = None,
) -> PlainRequest:
    """Return a request for one server.

    :param flavor: The flavor; None for that of :func:`make_flavor`.
    :param image: The image; None for a server without one.
    :param project_id: The id of the project of the server.
    :param scheduler_hints: The scheduler hints, with one or several values
        each.
    :param requested_host: The requested host, if any.
    """
    return PlainRequest(
        flavor=flavor or make_flavor(),
        image=image,
        project_id=project_id,
        scheduler_hints={
            key: (value,) if isinstance(value, str) else tuple(value)
            for key, value in (scheduler_hints or {}).items()
        },
        requested_host=requested_host,
    )
