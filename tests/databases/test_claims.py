# SPDX-License-Identifier: Apache-2.0
"""Slots that are claimed at the same time, on the databases of clouds.

Each round has a new host. nova-scheduler's own client claims for all servers
at once, from Placement over HTTP.
"""

from concurrent import futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import uuid

from nova import context as nova_context
from nova.scheduler.client import report
import pages
import placement as placement_package
import placement_service
import pytest
from thorough import THOROUGH
import uninstalling

from isolate_aggregates.nova import claims
from isolate_aggregates.upgrade_check import race_probe
from isolate_aggregates_tools.placement.client import PlacementClient

CLASS = f'CUSTOM_RESERVATION_{str(uuid.uuid4()).upper().replace("-", "_")}'
SLOTS = 3
BOOTS = 12
ROUNDS = 50 if THOROUGH else 5
VERSION = '1.36'
UPSTREAM = pages.ROOT / 'doc/source/contributor/upstream/placement'


@pytest.fixture(scope='module')
def placement(placement):
    """A Placement that knows the class of the slots."""
    placement.call('PUT', f'/resource_classes/{CLASS}')
    return placement


@pytest.fixture
def _checked():
    claims.install()
    yield
    uninstalling.uninstall()


def boot(placement, *hosts):
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


def boot_at_once(placement, *hosts):
    """Boot servers at the same time; return which of them got a slot."""
    with futures.ThreadPoolExecutor(BOOTS) as threads:
        return list(
            threads.map(lambda _: bool(boot(placement, *hosts)), range(BOOTS))
        )


def test_placement_alone_oversells(placement):
    """Without the check. If this fails, Placement has been mended."""
    used = []
    for _ in range(ROUNDS):
        host = placement.provider({CLASS: SLOTS, 'VCPU': 100})
        boot_at_once(placement, host)
        used.append(placement.usage(host, CLASS))
    assert max(used) > SLOTS


@pytest.mark.usefixtures('_checked')
def test_no_slot_is_sold_twice_or_left(placement):
    for _ in range(ROUNDS):
        host = placement.provider({CLASS: SLOTS, 'VCPU': 100})
        booted = boot_at_once(placement, host)
        assert booted.count(True) == SLOTS
        assert placement.usage(host, CLASS) == SLOTS


def test_the_report_shows_real_output(placement):
    report = (UPSTREAM / 'oversold-resources.txt').read_text('utf-8')
    [shown] = re.findall(r'^  \$ (?:.+\n)+', report, re.MULTILINE)
    output = textwrap.dedent(shown)[2:].split('\n', 1)[1]
    result = subprocess.run(
        [
            sys.executable,
            UPSTREAM / 'reproduce.py',
            placement.url,
            'admin',
            'oversold-resources',
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, '')
    # How many are accepted differs.
    real = re.sub(r'^[2-8]$', '...', result.stdout, flags=re.MULTILINE)
    assert pages.agrees(output, real), result.stdout


@pytest.mark.slow
def test_the_patch_mends_placement(server, tmp_path):
    packages = tmp_path / 'packages'
    package = pathlib.Path(placement_package.__file__).parent
    shutil.copytree(package, packages / 'placement')
    # As if it were not in a git clone.
    subprocess.run(
        ['git', 'apply', UPSTREAM / 'allocation-retry.patch'],
        cwd=packages,
        env={'PATH': os.defpath, 'GIT_CEILING_DIRECTORIES': str(tmp_path)},
        check=True,
    )
    own_tests = subprocess.run(
        [
            *(sys.executable, '-m', 'unittest'),
            'placement.tests.functional.test_allocation',
            'placement.tests.functional.db.test_allocation',
            'placement.tests.functional.db.test_reshape',
        ],
        cwd=packages,
        env={'PATH': os.defpath, 'PYTHONPATH': str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert own_tests.returncode == 0, own_tests.stderr
    with placement_service.running(
        server, tmp_path, packages=packages
    ) as patched:
        patched.call('PUT', f'/resource_classes/{CLASS}')
        for _ in range(ROUNDS):
            host = patched.provider({CLASS: SLOTS, 'VCPU': 100})
            assert boot_at_once(patched, host).count(True) == SLOTS
            assert patched.usage(host, CLASS) == SLOTS


def test_one_attempt_does_not_oversell(server, tmp_path):
    with placement_service.running(server, tmp_path, retries=1) as set_up:
        set_up.call('PUT', f'/resource_classes/{CLASS}')
        for _ in range(ROUNDS):
            host = set_up.provider({CLASS: SLOTS, 'VCPU': 100})
            # Not with Nova's client, which waits seconds before it repeats.
            with futures.ThreadPoolExecutor(BOOTS) as threads:
                list(threads.map(put, [set_up] * BOOTS, [host] * BOOTS))
            assert set_up.usage(host, CLASS) <= SLOTS


def test_the_probe_finds_it_and_cleans_up(placement):
    before = left_of_probe(placement)
    assert race_probe.most_sold(PlacementClient(placement.adapter())) > 1
    assert left_of_probe(placement) == before


def left_of_probe(placement):
    return tuple(
        [
            entry['name']
            for entry in placement.call('GET', f'/{what}').json()[what]
        ]
        for what in ('resource_providers', 'resource_classes')
    )


def put(placement, host):
    """Claim a slot once."""
    placement.call(
        'PUT',
        f'/allocations/{uuid.uuid4()}',
        {
            'allocations': {host: {'resources': {CLASS: 1}}},
            'project_id': 'project',
            'user_id': 'user',
            'consumer_generation': None,
            'consumer_type': 'TEST',
        },
    )
