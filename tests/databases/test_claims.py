# SPDX-License-Identifier: Apache-2.0
"""Slots that are claimed at the same time, on the databases of clouds.

Each round has a new host. nova-scheduler's own client claims for all servers
at once, from Placement over HTTP.
"""

from collections.abc import Iterator
from concurrent import futures
import pathlib
import tempfile
import uuid

from nova import context as nova_context
from nova.scheduler.client import report
import placement_service
from placement_service import PlacementService
import pytest
import servers
from thorough import THOROUGH

from isolate_aggregates.nova import claims

CLASS = f'CUSTOM_RESERVATION_{str(uuid.uuid4()).upper().replace("-", "_")}'
SLOTS = 3
BOOTS = 12
ROUNDS = 50 if THOROUGH else 10
VERSION = '1.36'


@pytest.fixture(scope='module', params=list(placement_service.KINDS))
def placement(request: pytest.FixtureRequest) -> Iterator[PlacementService]:
    """A Placement with its default configuration."""
    kind = placement_service.KINDS[request.param]
    if not kind.is_installed():
        pytest.skip(f'{kind.NAME} is not installed')
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        server = kind(folder / 'server', servers.free_port())
        server.start()
        try:
            with placement_service.running(server, folder) as found:
                found.call('PUT', f'/resource_classes/{CLASS}')
                yield found
        finally:
            server.stop()


@pytest.fixture
def _checked() -> Iterator[None]:
    claims.install()
    yield
    claims.uninstall()


def boot(placement: PlacementService, *hosts: str) -> bool | None:
    """Claim a slot for a new server, as nova-scheduler does host by host."""
    client = report.SchedulerReportClient(placement.adapter())
    server = str(uuid.uuid4())
    return any(
        client.claim_resources(
            nova_context.get_admin_context(),
            server,
            {'allocations': {host: {'resources': {CLASS: 1, 'VCPU': 1}}}},
            'project',
            'user',
            VERSION,
        )
        for host in hosts
    )


def boot_at_once(placement: PlacementService, *hosts: str) -> list[bool]:
    """Boot servers at the same time; return which of them got a slot."""
    with futures.ThreadPoolExecutor(BOOTS) as threads:
        return list(
            threads.map(lambda _: bool(boot(placement, *hosts)), range(BOOTS))
        )


def test_placement_alone_oversells(placement: PlacementService) -> None:
    """Without the check. If this fails, Placement has been mended."""
    used = []
    for _ in range(ROUNDS):
        host = placement.provider({CLASS: SLOTS, 'VCPU': 100})
        boot_at_once(placement, host)
        used.append(placement.usage(host, CLASS))
    assert max(used) > SLOTS


@pytest.mark.usefixtures('_checked')
def test_no_slot_is_sold_twice_or_left(placement: PlacementService) -> None:
    for _ in range(ROUNDS):
        host = placement.provider({CLASS: SLOTS, 'VCPU': 100})
        booted = boot_at_once(placement, host)
        assert booted.count(True) == SLOTS
        assert placement.usage(host, CLASS) == SLOTS
