# SPDX-License-Identifier: Apache-2.0
"""Reads from a live cloud what an audit looks at.

Whatever can not be read is an error: an audit of half a cloud would call the
other half clean.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from oslo_config import cfg

from isolate_aggregates import exception
from isolate_aggregates.cloud import save
from isolate_aggregates.cloud.clouds import LiveCloud
from isolate_aggregates.cloud.servers import PlacedServer
from isolate_aggregates.inspect.audit.cloud import AuditedCloud, Servers
from isolate_aggregates.placement import providers
from isolate_aggregates.placement.client import PlacementClient
from isolate_aggregates.request import Image

# Takes what comes one by one, what it is, and how many will come if that is
# known, and gives it back.
TrackNamed = Callable[[Iterator[Any], str, int | None], Iterable[Any]]


def _untracked(
    found: Iterator[Any], what: str, total: int | None
) -> Iterable[Any]:
    return found


def audited(
    cloud: LiveCloud,
    conf: cfg.ConfigOpts,
    servers: bool = False,
    track: TrackNamed = _untracked,
) -> AuditedCloud:
    """Return what an audit of a live cloud looks at.

    :param conf: A configuration with our options registered.
    :param servers: Whether to read the servers of all projects too.
    :raises IsolateAggregatesError: if anything can not be read.
    """
    snapshot = save.take(
        # Not those of [isolate_aggregates] aggregate_source, which may be a
        # file.
        cloud.nova.aggregates(),
        cloud.nova,
        cloud.glance,
        cloud.placement,
        {},
        lambda found, total: track(found, 'resource providers', total),
    )
    return AuditedCloud.of(
        snapshot,
        conf,
        nova=cloud.nova.microversion,
        placement=_newest(cloud.placement),
        traits=providers.known_traits(cloud.placement),
        resource_classes=cloud.placement.read(
            '/resource_classes',
            lambda document: frozenset(
                entry['name'] for entry in document['resource_classes']
            ),
        ),
        servers=_servers(cloud, snapshot.images, track) if servers else None,
    )


def _newest(placement: PlacementClient) -> str:
    """Return the newest microversion that Placement offers."""

    def pick(document: Any) -> str:
        return str(document['versions'][0]['max_version'])

    return placement.read('/', pick)


def _servers(
    cloud: LiveCloud, images: Iterable[Image], track: TrackNamed
) -> Servers:
    placed = tuple(track(cloud.nova.servers(), 'servers', None))
    known = {image.id: image for image in images}
    missing = _used_images(placed) - known.keys()
    # Glance lists no hidden images, but tells of each.
    for image_id in track(iter(sorted(missing)), 'images', len(missing)):
        try:
            known[image_id] = cloud.glance.image(image_id)
        except exception.NotFound:
            continue
    return Servers(placed, known, cloud.nova.tells_hints)


def _used_images(placed: Iterable[PlacedServer]) -> set[str]:
    return {server.image_id for server in placed if server.image_id}
