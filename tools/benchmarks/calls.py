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
locks
    What ``lock list`` reads without a memory.
first
    The first reading of a service, or of ``audit``: nothing is known.
unchanged
    A later one, before which nothing was written.
boots
    A later one, before which a server was booted on 1 % of the hosts.
sync
    A later round of ``sync --watch``, before which nothing was written.
command
    The second ``audit`` or ``explain``, with what the first kept in a file.

*First inventories* are the calls of the first reading for the inventories
of one provider: no call returns the limits of those of many.
*Memory* is what is remembered for one provider, after all readings.

With ``--before`` another checkout of this project and this one run in turn,
each in a process of its own. ``openstack-exporter`` sends one call and three
for each provider, whatever has changed (of its source).
"""

import collections
from collections.abc import Iterator
import contextlib
import csv
import dataclasses
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any
from unittest import mock
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
from isolate_aggregates_tools.cloud.live.provider_memory import (  # noqa: E402
    ProviderMemory,
)
from isolate_aggregates_tools.embedded import EmbeddedPlacement  # noqa: E402
from isolate_aggregates_tools.operate.sync import (  # noqa: E402
    snapshot as sync_snapshot,
)
from isolate_aggregates_tools.placement.provider import (  # noqa: E402
    Inventory,
    Provider,
)

HOSTS = (100, 1_000)
AGGREGATES = 200
LOCKS = 50
READINGS = (
    'explain',
    'locks',
    'first',
    'unchanged',
    'boots',
    'sync',
    'command',
)
ROOT = from_tests.ROOT


@dataclasses.dataclass(frozen=True)
class Row:
    """Calls to Placement, and seconds of its processor time, by reading.

    :param first_inventories: The calls of the first one for the inventories of
        one provider.
    :param memory: Bytes that are remembered for one provider.
    """

    hosts: int
    providers: int
    explain: int
    locks: int
    first: int
    unchanged: int
    boots: int
    sync: int
    command: int
    explain_seconds: float
    locks_seconds: float
    first_seconds: float
    unchanged_seconds: float
    boots_seconds: float
    sync_seconds: float
    command_seconds: float
    first_inventories: int
    memory: float

    @property
    def of_providers(self) -> float:
        """The calls of a reading after boots, for one provider."""
        return self.boots / self.providers

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
        self.memory = ProviderMemory()
        self._memory_of_sync = ProviderMemory()
        self._connection = self.connection()
        self._carry = self.wire.carry
        self.wire.carry = self._timed
        self._seconds = 0.0
        self._calls = 0
        #: The calls of the last reading by the last part of their paths.
        self.kinds: collections.Counter[str] = collections.Counter()

    def _timed(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        if not request.url.startswith(self.endpoint):
            return self._carry(request, *args, **kwargs)
        start = time.thread_time()
        try:
            return self._carry(request, *args, **kwargs)
        finally:
            self._calls += 1
            self.kinds[request.url.partition('?')[0].rpartition('/')[2]] += 1
            self._seconds += time.thread_time() - start

    @contextlib.contextmanager
    def _counting(self) -> Iterator[None]:
        self._calls, self._seconds = 0, 0.0
        self.kinds.clear()
        yield

    def read(self) -> tuple[int, float]:
        """Read the cloud; return the calls to Placement, and its seconds."""
        with self._counting():
            self._cloud(self.memory).survey()
        return self._calls, self._seconds

    def sync(self) -> tuple[int, float]:
        """Read what a round of sync compares."""
        with self._counting():
            sync_snapshot.read(self._cloud(self._memory_of_sync))
        return self._calls, self._seconds

    def command(self) -> tuple[int, float]:
        """Read the cloud as ``audit``, with a file in the cache folder."""
        with (
            self._counting(),
            contextlib.closing(self._cloud(remembers=True)) as cloud,
        ):
            cloud.survey()
        return self._calls, self._seconds

    def explain(self) -> tuple[int, float]:
        """Read what ``explain`` needs, without a memory."""
        with self._counting():
            self._cloud().snapshot_for(
                [identity('aggregate', number) for number in range(LOCKS)],
                {'VCPU': {4}, 'MEMORY_MB': {8192}, 'DISK_GB': {20}},
            )
        return self._calls, self._seconds

    def locks(self) -> tuple[int, float]:
        """Read what ``lock list`` needs, without a memory."""
        with self._counting():
            cloud = self._cloud()
            _ = cloud.index, cloud.capacities
        return self._calls, self._seconds

    def _cloud(
        self, memory: ProviderMemory | None = None, remembers: bool = False
    ) -> live_cloud.LiveCloud:
        return live_cloud.LiveCloud(
            self._conf, lambda: self._connection, memory, remembers
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


def _bytes(memory: ProviderMemory) -> int:
    """Return the bytes of all objects that only a memory refers to."""
    seen: dict[int, Any] = {}
    waiting: list[Any] = [memory.known]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen and not isinstance(one, type):
            seen[id(one)] = one
            waiting += gc.get_referents(one)
    return sum(map(sys.getsizeof, seen.values()))


def measure(hosts: int) -> Row:
    """Measure a cloud of a size."""
    placement = EmbeddedPlacement()
    try:
        service = Service(placement.open(), hosts)
        explain = service.explain()
        locks = service.locks()
        first = service.read()
        inventories = service.kinds['inventories']
        unchanged = service.read()
        service.boot()
        boots = service.read()
        service.sync()
        sync = service.sync()
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.dict(os.environ, XDG_CACHE_HOME=folder),
        ):
            service.command()
            command = service.command()
    finally:
        placement.close()
    calls, seconds = zip(
        explain, locks, first, unchanged, boots, sync, command, strict=True
    )
    providers = len(service.providers)
    return Row(
        hosts,
        providers,
        *calls,
        *seconds,
        inventories,
        _bytes(service.memory) / providers,
    )


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
    for reading in READINGS:
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
