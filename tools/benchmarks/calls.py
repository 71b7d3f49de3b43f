# SPDX-License-Identifier: Apache-2.0
"""Counts what a reading of the exporter, and ``explain``, cost Placement.

    python tools/benchmarks/calls.py [--csv FILE] [--before CHECKOUT]
        [hosts ...]

A real Placement in this process, on SQLite in memory. A tenth of the hosts
have four child providers, and a tenth have no CPU left. There are 200
aggregates, most with five hosts. Each call is counted, with the processor time
that Placement takes for it. The reading is that of ``LiveCloud.survey``, with
the same memory in each round, as in the exporter.

explain
    What ``explain`` reads without a memory, for four CPUs and 50 locks.
first
    The first reading of a service, or of ``audit``: nothing is known.
unchanged
    A later one, before which nothing was written.
boots
    A later one, before which a server was booted on 1 % of the hosts.

With ``--before`` another checkout of this project and this one run in turn,
each in a process of its own. ``openstack-exporter`` sends one call and three
for each provider, whatever has changed (of its source).
"""

from collections.abc import Iterator
import csv
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any
import uuid

import from_tests
from oslo_config import cfg
import table

from_tests.use()
from loaded import identity  # noqa: E402
import placement_rows  # noqa: E402
from wired_world import WiredWorld  # noqa: E402

from isolate_aggregates import options as tools_options  # noqa: E402
from isolate_aggregates_tools.cloud.live import live_cloud  # noqa: E402
from isolate_aggregates_tools.embedded import EmbeddedPlacement  # noqa: E402
from isolate_aggregates_tools.placement.provider import (  # noqa: E402
    Inventory,
    Provider,
)

HOSTS = (100, 1_000)
AGGREGATES = 200
LOCKS = 50
ROOT = from_tests.ROOT


@dataclasses.dataclass(frozen=True)
class Row:
    """Calls to Placement, and seconds of its processor time, by reading."""

    hosts: int
    providers: int
    explain: int
    first: int
    unchanged: int
    boots: int
    explain_seconds: float
    first_seconds: float
    unchanged_seconds: float
    boots_seconds: float

    @property
    def of_openstack_exporter(self) -> float:
        """The share of its calls that a reading after boots has."""
        return self.boots / (1 + 3 * self.providers)

    @property
    def of_first(self) -> float:
        """The share of the calls of the first reading."""
        return self.boots / self.first


@dataclasses.dataclass(frozen=True)
class Change:
    """Calls and seconds of a reading, by checkout."""

    hosts: int
    reading: str
    calls_before: int
    calls: int
    seconds_before: float
    seconds: float

    @property
    def of_before(self) -> float:
        """The share of the calls before."""
        return self.calls / self.calls_before


def providers(hosts: int) -> list[Provider]:
    """Return the providers of a cloud, parents first."""
    found = []
    for number in range(hosts):
        name = f'host-{number}'
        total = {'VCPU': 64, 'MEMORY_MB': 262_144, 'DISK_GB': 4_000}
        joined = {identity('aggregate', number // 5 % AGGREGATES)}
        found.append(
            Provider(
                identity(name),
                name,
                host=name,
                inventories={rc: Inventory(n) for rc, n in total.items()},
                usages={'VCPU': 64 if number % 10 == 1 else number % 60},
                traits=frozenset({'HW_CPU_X86_VMX', 'COMPUTE_NODE'}),
                aggregates=frozenset(joined),
            )
        )
        if number % 10 == 0:
            found += [
                Provider(
                    identity(name, child),
                    f'{name}-{child}',
                    identity(name),
                    inventories={'SRIOV_NET_VF': Inventory(8)},
                )
                for child in range(4)
            ]
    return found


class Service(WiredWorld):
    """A service that reads a cloud, and the users of the cloud."""

    def __init__(self, client: Any, hosts: int) -> None:
        super().__init__(client)
        self.providers = providers(hosts)
        self.hosts = [p for p in self.providers if p.host]
        placement_rows.load(self.providers)
        for host in self.hosts:
            self.nova.nodes[host.uuid] = {
                'id': host.uuid,
                'hypervisor_hostname': host.name,
                'service': {'host': host.name},
                'state': 'up',
                'status': 'enabled',
            }
        for number in range(AGGREGATES):
            self.nova.aggregates[number + 1] = {
                'id': number + 1,
                'uuid': identity('aggregate', number),
                'name': f'aggregate-{number}',
                'hosts': [],
                'metadata': {},
                'availability_zone': None,
            }
        self._conf = cfg.ConfigOpts()
        tools_options.register_opts(self._conf)
        self._conf([], default_config_files=[], default_config_dirs=[])
        self._arguments = _memory()
        self._connection = self.connection()
        self._carry = self.wire.carry
        self.wire.carry = self._timed
        self._seconds = 0.0
        self._calls = 0

    def _timed(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        if not request.url.startswith(self.endpoint):
            return self._carry(request, *args, **kwargs)
        start = time.thread_time()
        try:
            return self._carry(request, *args, **kwargs)
        finally:
            self._calls += 1
            self._seconds += time.thread_time() - start

    def read(self) -> tuple[int, float]:
        """Read the cloud; return the calls to Placement, and its seconds."""
        self._calls, self._seconds = 0, 0.0
        self._cloud(*self._arguments).survey()
        return self._calls, self._seconds

    def explain(self) -> tuple[int, float]:
        """Read what ``explain`` needs, without a memory."""
        self._calls, self._seconds = 0, 0.0
        cloud = self._cloud()
        if hasattr(cloud, 'snapshot_for'):
            cloud.snapshot_for(
                [identity('aggregate', number) for number in range(LOCKS)],
                {'VCPU': {4}, 'MEMORY_MB': {8192}, 'DISK_GB': {20}},
            )
        else:
            assert cloud.snapshot
        return self._calls, self._seconds

    def _cloud(self, *arguments: Any) -> live_cloud.LiveCloud:
        return live_cloud.LiveCloud(
            self._conf, lambda: self._connection, *arguments
        )

    def boot(self) -> None:
        """Boot servers on 1 % of the hosts."""
        for host in self.hosts[5::100]:
            self.direct.send(
                'PUT',
                f'/allocations/{uuid.uuid4()}',
                {
                    'allocations': {host.uuid: {'resources': {'VCPU': 1}}},
                    'project_id': 'p',
                    'user_id': 'u',
                    'consumer_generation': None,
                },
            )


def _memory() -> list[Any]:
    """Return a memory; none for a checkout that has none."""
    try:
        from isolate_aggregates_tools.cloud.live.provider_memory import (
            ProviderMemory,
        )
    except ImportError:
        return []
    return [ProviderMemory()]


def measure(hosts: int) -> Row:
    """Measure a cloud of a size."""
    placement = EmbeddedPlacement()
    try:
        service = Service(placement.open(), hosts)
        explain = service.explain()
        first = service.read()
        unchanged = service.read()
        service.boot()
        boots = service.read()
    finally:
        placement.close()
    calls, seconds = zip(explain, first, unchanged, boots, strict=True)
    return Row(hosts, len(service.providers), *calls, *seconds)


def measure_in(checkout: pathlib.Path, hosts: int) -> dict[str, str]:
    """Measure a checkout in a process of its own."""
    parts = [checkout, *checkout.glob('isolate-aggregates-*')]
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / 'rows.csv'
        subprocess.run(
            [sys.executable, __file__, '--csv', path, str(hosts)],
            env={**os.environ, 'PYTHONPATH': os.pathsep.join(map(str, parts))},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        with path.open(encoding='utf-8') as stream:
            [row] = csv.DictReader(stream)
    return row


def compare(before: pathlib.Path, hosts: int) -> Iterator[Change]:
    """Measure two checkouts in turn."""
    old, new = (measure_in(checkout, hosts) for checkout in (before, ROOT))
    for reading in ('explain', 'first', 'unchanged', 'boots'):
        yield Change(
            hosts,
            reading,
            int(old[reading]),
            int(new[reading]),
            float(old[f'{reading}_seconds']),
            float(new[f'{reading}_seconds']),
        )


def main() -> None:
    """Measure and print a table."""
    parser = table.parser('hosts', HOSTS)
    parser.add_argument(
        '--before', type=pathlib.Path, help='another checkout to compare with'
    )
    options = parser.parse_args()
    rows = [
        row
        for hosts in options.hosts
        for row in (
            compare(options.before.resolve(), hosts)
            if options.before
            else [measure(hosts)]
        )
    ]
    table.report(rows, options.csv)


if __name__ == '__main__':
    main()
