# SPDX-License-Identifier: Apache-2.0
"""Measures how the cost of commands grows with the cloud.

    python tools/benchmarks/scale.py [--csv FILE] [--commands NAME ...] [hosts]

Each command that only reads, and the plan of sync, runs in a process of its
own on a cloud file, with its default output format; ``matrix list`` also as
JSON. Those that judge servers have ten on each host. It is processor time, and
other work of the machine does not count. The exponent compares a row with that
of the next smaller cloud: with 1, a cloud of ten times the size takes ten
times as long. All commands start Python and read the file; ``filter list``
only starts, and ``lock show`` does little else than read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import dataclasses
import itertools
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import from_tests
import table

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools.cloud.file import serialize
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.compute.servers import Server, Servers
from isolate_aggregates_tools.placement.provider import Inventory, Provider

from_tests.use()
from loaded import identity  # noqa: E402

HOSTS = (100, 1_000, 10_000)
ZONES = 3
# Hosts for each rack, and for each flavor.
IN_A_RACK = 5
OF_A_FLAVOR = 20
# Servers on each host.
ON_A_HOST = 10
# Locks by trait and by project; as many in small clouds as in large ones.
TRAITS = 50
PROJECTS = 20
# No limit: without rollups, no query would fit.
SETTINGS: Mapping[tuple[str, str], object] = {
    ('scheduler', 'enable_isolated_aggregate_filtering'): True,
    ('scheduler', 'limit_tenants_to_placement_aggregate'): True,
    ('isolate_aggregates', 'max_query_length'): 0,
}

# The exit statuses with changes to make (3) and findings (4).
DONE = (0, 3, 4)

# Returns the arguments of a command.
Arguments = Callable[['Files'], Sequence[str]]


@dataclasses.dataclass(frozen=True)
class Files:
    """The files of a cloud in a directory."""

    directory: pathlib.Path

    @property
    def cloud(self) -> str:
        """The cloud file."""
        return str(self.directory / 'cloud.json')

    @property
    def with_servers(self) -> str:
        """The cloud file with the servers of all projects."""
        return str(self.directory / 'servers.json')

    @property
    def later(self) -> str:
        """The cloud file of the same cloud at a later time."""
        return str(self.directory / 'later.json')

    @property
    def output(self) -> pathlib.Path:
        """What a command writes."""
        return self.directory / 'output.prom'


def _on_file(*words: str) -> Arguments:
    return lambda files: [*words, '--snapshot', files.cloud]


def _on_servers(*words: str) -> Arguments:
    return lambda files: [*words, '--snapshot', files.with_servers]


COMMANDS: Mapping[str, Arguments] = {
    'filter list': lambda _: ['filter', 'list'],
    'lock show': _on_file('lock', 'show', 'rack-0'),
    'lock list': _on_file('lock', 'list'),
    'candidate list --query': _on_file(
        'candidate', 'list', '--query', '--flavor', 'flavor-0'
    ),
    'candidate list': _on_file('candidate', 'list', '--flavor', 'flavor-0'),
    'explain': _on_file('explain', '--flavor', 'flavor-0'),
    'capacity list': _on_file('capacity', 'list', '--flavor', 'flavor-0'),
    'matrix list': _on_file('matrix', 'list'),
    'matrix list as JSON': _on_file('matrix', 'list', '-f', 'json'),
    'audit': _on_file('audit'),
    'audit of servers': _on_servers('audit', '--servers'),
    'survival list': _on_servers('survival', 'list'),
    'report save': _on_file('report', 'save'),
    'exporter': lambda files: [
        *_on_file('exporter', '--output', str(files.output))(files)
    ],
    'sync': _on_file('sync', '--dry-run', '--no-effect'),
    'sync with effect': _on_file('sync', '--dry-run'),
    'effect show --to': lambda files: [
        *_on_file('effect', 'show', '--to', files.later)(files)
    ],
}


def metadata(rack: int) -> dict[str, str]:
    """Return the tags of a rack: half of the racks are locked."""
    if rack % 2:
        return {}
    if rack % 10 == 0:
        return {'filter_tenant_id': f'project-{rack // 10 % PROJECTS}'}
    # Four racks of ten.
    number = rack // 10 * 4 + rack % 10 // 2
    return {f'trait:CUSTOM_LICENSE_{number % TRAITS}': 'required'}


def flavor(number: int) -> Flavor:
    """Return a flavor: half of them have a key."""
    return Flavor(
        f'flavor-{number}',
        str(number),
        number % 8 + 1,
        2048,
        20,
        extra_specs={
            f'trait:CUSTOM_LICENSE_{number // 2 % TRAITS}': 'required'
        }
        if number % 2
        else {},
    )


def cloud(hosts: int, later: bool = False) -> Snapshot:
    """Return a cloud.

    :param later: Whether to return it with other usage, and with a host less.
    """
    racks = math.ceil(hosts / IN_A_RACK)
    names = [f'host-{number:05}' for number in range(hosts)]
    zones = [
        Aggregate(
            identity('zone', zone),
            f'zone-{zone}',
            {'availability_zone': f'zone-{zone}'},
            frozenset(
                name
                for number, name in enumerate(names)
                if number // IN_A_RACK % ZONES == zone
            ),
        )
        for zone in range(ZONES)
    ]
    in_racks = [
        Aggregate(
            identity('rack', rack),
            f'rack-{rack}',
            metadata(rack),
            frozenset(names[rack * IN_A_RACK : (rack + 1) * IN_A_RACK]),
        )
        for rack in range(racks)
    ]
    return Snapshot(
        'made up',
        (*zones, *in_racks),
        tuple(
            _node(number, zones, in_racks, later)
            for number in range(hosts - later)
        ),
        tuple(map(flavor, range(max(hosts // OF_A_FLAVOR, 1)))),
        settings=SETTINGS,
        traits=frozenset(
            f'CUSTOM_LICENSE_{number}' for number in range(TRAITS)
        ),
    )


def _node(
    number: int,
    zones: Sequence[Aggregate],
    racks: Sequence[Aggregate],
    later: bool,
) -> Provider:
    rack = racks[number // IN_A_RACK]
    required = [
        key.removeprefix('trait:')
        for key in rack.metadata
        if key.startswith('trait:')
    ]
    used = number % 60 + 1 + later
    return Provider(
        identity('host', number),
        f'host-{number:05}',
        host=f'host-{number:05}',
        inventories={
            'VCPU': Inventory(64, allocation_ratio=4.0),
            'MEMORY_MB': Inventory(262_144, reserved=4096),
            'DISK_GB': Inventory(4000),
        },
        usages={'VCPU': used, 'MEMORY_MB': used * 2048, 'DISK_GB': used * 20},
        # In some racks, hosts miss the traits and the memberships.
        traits=frozenset(
            ('COMPUTE_NODE', *(required if number % 100 else ()))
        ),
        aggregates=frozenset(
            (zones[number // IN_A_RACK % ZONES].uuid, rack.uuid)
            if number % 100
            else ()
        ),
    )


def with_servers(snapshot: Snapshot) -> Snapshot:
    """Return a cloud with servers on all hosts."""
    image = Image('image', identity('image', 0))
    hosts = [provider.name for provider in snapshot.providers]
    servers = (
        Server(
            identity('server', number),
            f'server-{number}',
            f'project-{number % (3 * PROJECTS)}',
            'ACTIVE',
            hosts[number // ON_A_HOST],
            dataclasses.replace(
                snapshot.flavors[number % len(snapshot.flavors)], id=''
            ),
            image.id,
            ports=(),
        )
        for number in range(len(hosts) * ON_A_HOST)
    )
    return dataclasses.replace(
        snapshot,
        images=(image,),
        servers=Servers(tuple(servers), {image.id: image}, True, ()),
        services=(),
    )


@dataclasses.dataclass(frozen=True)
class Row:
    """Seconds of processor time, peak memory in MiB and bytes of output."""

    command: str
    hosts: int
    aggregates: int
    flavors: int
    processor: float
    memory: float
    output: int
    exponent: float | None


@dataclasses.dataclass(frozen=True)
class Cost:
    """What a process has used."""

    processor: float
    memory: float
    output: int


# Runs a command, and prints what it has used to a file. The peak of a process
# includes that of the process it was forked from, so this one is small.
LAUNCHER = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], 'w') as stream:
    print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=stream)
sys.exit(status)
"""


def run(arguments: Sequence[str], files: Files) -> Cost:
    """Run a command.

    :raises SystemExit: if it fails.
    """
    files.output.unlink(missing_ok=True)
    printed = files.directory / 'stdout'
    usage = files.directory / 'usage'
    with printed.open('wb') as stdout:
        process = subprocess.run(
            [
                *(sys.executable, '-c', LAUNCHER, usage),
                *(
                    sys.executable,
                    '-W',
                    'ignore',
                    '-m',
                    'isolate_aggregates_tools',
                ),
                *arguments,
            ],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )
    if process.returncode not in DONE or 'Traceback' in process.stderr:
        sys.exit(f'{" ".join(arguments)}: {process.stderr}')
    size = printed.stat().st_size
    if files.output.exists():
        size += files.output.stat().st_size
    processor, peak = map(float, usage.read_text().split())
    # Linux reports KiB.
    return Cost(processor, peak / 1024, size)


def measured(hosts: int, names: Iterable[str]) -> dict[str, Row]:
    """Return the rows of a cloud."""
    rows = {}
    with tempfile.TemporaryDirectory() as directory:
        files = Files(pathlib.Path(directory))
        snapshot = cloud(hosts)
        for path, saved in (
            (files.cloud, snapshot),
            (files.with_servers, with_servers(snapshot)),
            (files.later, cloud(hosts, later=True)),
        ):
            with open(path, 'w', encoding='utf-8') as stream:
                json.dump(serialize.document(saved), stream)
        for name in names:
            cost = run(COMMANDS[name](files), files)
            rows[name] = Row(
                name,
                hosts,
                len(snapshot.aggregates),
                len(snapshot.flavors),
                *dataclasses.astuple(cost),
                None,
            )
            print(rows[name], file=sys.stderr, flush=True)
    return rows


def with_exponents(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one command with their exponents.

    :param rows: The rows, the smallest cloud first.
    """
    return [
        rows[0],
        *(
            dataclasses.replace(
                row,
                exponent=math.log(row.processor / smaller.processor)
                / math.log(row.hosts / smaller.hosts),
            )
            for smaller, row in itertools.pairwise(rows)
        ),
    ]


def main() -> None:
    """Measure and print a table."""
    parser = table.parser('hosts', HOSTS)
    parser.add_argument(
        '--commands', nargs='+', choices=COMMANDS, default=[*COMMANDS]
    )
    options = parser.parse_args()
    by_size = [
        measured(hosts, options.commands) for hosts in sorted(options.hosts)
    ]
    table.report(
        [
            row
            for name in options.commands
            for row in with_exponents([rows[name] for rows in by_size])
        ],
        options.csv,
    )


if __name__ == '__main__':
    main()
