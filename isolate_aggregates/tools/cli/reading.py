# SPDX-License-Identifier: Apache-2.0
"""Reads as much of a cloud as a command needs."""

from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING, cast

from oslo_log import log as logging

from isolate_aggregates import exception
from isolate_aggregates.tools.cli import progress
from isolate_aggregates.tools.cloud.cloud import Cloud
from isolate_aggregates.tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates.tools.cloud.snapshot import Snapshot

if TYPE_CHECKING:
    from isolate_aggregates.tools.cloud.live.live_cloud import LiveCloud

LOG = logging.getLogger(__name__)


def read(cloud: Cloud, servers: bool) -> Snapshot:
    """Read everything that an effect depends on.

    :param servers: Whether to read the servers; a cloud file may have none.
    """
    if isinstance(cloud, SnapshotCloud):
        servers = servers and cloud.snapshot.servers is not None
    survey = cloud.survey(servers, progress.reading)
    return dataclasses.replace(survey.snapshot, servers=survey.servers)


def read_all(cloud: Cloud) -> tuple[Snapshot, Sequence[int]]:
    """Read everything that decides where servers can go.

    :returns: The cloud with its servers and their ports, and the possible
        releases of its Nova.
    """
    survey = cloud.survey(True, progress.reading)
    servers = survey.servers
    if servers and not isinstance(cloud, SnapshotCloud):
        live: LiveCloud = cast('LiveCloud', cloud)
        try:
            servers = live.with_ports(servers)
        except exception.ServiceError as exc:
            LOG.warning('It is not known what ports request: %s', exc)
    return (
        dataclasses.replace(survey.snapshot, servers=servers),
        survey.nova_releases,
    )
