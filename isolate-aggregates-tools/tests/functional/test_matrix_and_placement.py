# SPDX-License-Identifier: Apache-2.0
"""The matrix agrees with a real Placement."""

import dataclasses
import pathlib

import pytest

from isolate_aggregates import exception
from isolate_aggregates_tools import candidates
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.matrix.matrix import matrix, requests
from isolate_aggregates_tools.mirrored import chain

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / 'examples').glob('*.yaml'))


def compared(conf, snapshot):
    """Yield the result of the matrix and of Placement for each request."""
    clouds.apply_settings(conf, snapshot)
    pipeline = chain.as_in_nova(conf)
    builder = Requests(SnapshotCloud(snapshot), conf)
    asked = [
        *requests(builder, snapshot.flavors, project_id='demo'),
        *requests(builder, snapshot.flavors, snapshot.images, 'demo'),
    ]
    table = matrix(snapshot, pipeline, asked, ())
    cloud = SnapshotCloud(snapshot)
    hosts = {p.name: p.host for p in snapshot.providers}
    try:
        for row in table.rows:
            may = {
                host
                for group, reasons in zip(
                    table.groups, row.objections, strict=True
                )
                for host in group.hosts
                if not reasons
            }
            try:
                outcome = candidates.find(cloud, pipeline, row.request, None)
                offered = {hosts[host.name] for host in outcome.hosts}
            except exception.RequestRefused:
                offered = set()
            except exception.BadQuery as exc:
                # The trait was never created, so no host can have it.
                if 'No such trait(s): CUSTOM_FPGA' not in str(exc):
                    raise
                offered = set()
            yield row.request, may, offered
    finally:
        cloud.close()


@pytest.mark.parametrize('path', EXAMPLES, ids=lambda path: path.stem)
def test_no_host_that_placement_offers_is_called_closed(conf, path):
    for request, may, offered in compared(conf, cloud_file.load(path)):
        assert offered <= may, request


@pytest.mark.parametrize(
    'name', ['campus', 'no-valid-host', 'reservations', 'windows-licensing']
)
def test_with_free_hosts_the_matrix_equals_placements_offers(conf, name):
    snapshot = cloud_file.load(ROOT / 'examples' / f'{name}.yaml')
    empty = dataclasses.replace(
        snapshot,
        providers=tuple(
            dataclasses.replace(provider, usages={})
            for provider in snapshot.providers
        ),
    )
    rows = list(compared(conf, empty))
    assert any(may for _, may, _ in rows)
    for request, may, offered in rows:
        assert offered == may, request
