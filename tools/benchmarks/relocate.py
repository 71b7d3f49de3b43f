# SPDX-License-Identifier: Apache-2.0
"""How long plans of migrations take, and what survives a failing host.

    python tools/benchmarks/relocate.py [--csv FILE] [hosts ...]

The cloud is that of ``effect.py``, with 20 servers for each host and so full
that each host has room for one or two more. Planned are: one host to be
emptied, fifty hosts in rolling order, and room for servers that fit on no
host. Times are processor time of the whole computation, with the cloud in
memory; memory is the peak of the process.
"""

import dataclasses
import resource
import time

from effect import SERVERS, cloud
from oslo_config import cfg
import table

from isolate_aggregates import options as tools_options
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.placement.provider import Inventory
from isolate_aggregates_tools.request import Request
from isolate_aggregates_tools.room.plan import Planner
from isolate_aggregates_tools.room.survival import survival
from isolate_aggregates_tools.room.task import Task

FIELDS = (
    'hosts',
    'servers',
    'question',
    'moves',
    'least',
    'left',
    'seconds',
    'mebibytes',
)
QUESTIONS = ('empty', 'rolling', 'room', 'survive')
ROLLING = 50
# Room for these on a host, beside its servers.
SPARE_CPUS = 6
SPARE_MEMORY = 12_288


def full(hosts: int) -> Snapshot:
    """Return a cloud whose hosts are almost full."""
    snapshot = cloud(hosts)
    used: dict[str, tuple[int, int]] = {}
    servers = snapshot.known_servers
    for server in servers.placed:
        if server.host and server.flavor:
            cpus, memory = used.get(server.host, (0, 0))
            used[server.host] = (
                cpus + server.flavor.vcpus,
                memory + server.flavor.ram,
            )
    return dataclasses.replace(
        snapshot,
        providers=tuple(
            dataclasses.replace(
                provider,
                inventories={
                    'VCPU': Inventory(cpus + SPARE_CPUS),
                    'MEMORY_MB': Inventory(memory + SPARE_MEMORY),
                    'DISK_GB': Inventory(2_000),
                },
                usages={
                    'VCPU': cpus,
                    'MEMORY_MB': memory,
                    'DISK_GB': 10 * SERVERS,
                },
            )
            for provider in snapshot.providers
            for cpus, memory in [used[provider.host or '']]
        ),
        servers=dataclasses.replace(servers, groups=()),
        services=(),
    )


def measure(hosts: int, question: str) -> dict[str, object]:
    """Return a row of the table."""
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    group, option = 'scheduler', 'enable_isolated_aggregate_filtering'
    conf.set_override(option, True, group)
    snapshot = full(hosts)
    everything = frozenset({'pinned', 'devices'})
    began = time.process_time()
    planner = Planner(snapshot, conf)
    moves = least = left = 0
    if question == 'survive':
        result = survival(snapshot, conf)
        left = max(len(case.stranded) for case in result.cases)
        least = max(case.least for case in result.cases)
    elif question == 'rolling':
        task = Task(
            frozenset(f'cn-{number:05}' for number in range(20, 20 + ROLLING)),
            include=everything,
        )
        batches, remaining = planner.rolling(task)
        moves = sum(len(batch.plan.moves) for batch in batches)
        least = sum(batch.plan.least for batch in batches)
        left = len(remaining)
    else:
        wanted = None
        emptied = frozenset[str]()
        if question == 'room':
            flavor = Flavor('large', vcpus=10, ram=16_384, disk=10)
            kind = planner.kind_of(Request(flavor, None, 'project-1'))
            wanted = kind, 10
        else:
            emptied = frozenset({'cn-00021'})
        plan = planner.plan(Task(emptied, wanted=wanted, include=everything))
        moves, least = len(plan.moves), plan.least
        left = len(plan.left) + plan.missing
    return {
        'hosts': hosts,
        'servers': SERVERS * hosts,
        'question': question,
        'moves': moves,
        'least': least,
        'left': left,
        'seconds': round(time.process_time() - began, 2),
        'mebibytes': round(
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        ),
    }


if __name__ == '__main__':
    table.measure_apart(
        __doc__, 'hosts', [100, 1_000], measure, FIELDS, QUESTIONS
    )
