# SPDX-License-Identifier: Apache-2.0
"""Counts how often Placement sells more than there is.

    python tools/benchmarks/oversold.py [--csv FILE] [rounds]

For each row a Placement with four workers on a new database, of one release
and with one setting. In each round twelve clients at once claim one of three
units of a new resource provider, each with one request. Older releases are
installed from PyPI into folders of their own; it takes some minutes.
"""

from collections.abc import Iterator, Mapping
from concurrent import futures
import contextlib
import dataclasses
from importlib import metadata
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any
import uuid
import venv

import from_tests
from keystoneauth1 import exceptions
import placement
import table

ROOT = pathlib.Path(__file__).resolve().parents[2]
from_tests.use('tests/databases')
import database_servers  # noqa: E402
from placement_service import PlacementService, running  # noqa: E402

PATCH = (
    ROOT / 'doc/source/contributor/upstream/placement/allocation-retry.patch'
)
CLASS = 'CUSTOM_UNIT'
UNITS = 3
CLIENTS = 12
OLDER = ('13.0.0', '14.0.0')

# Of each connection to the database. PostgreSQL has only its default here.
LEVELS = {
    'mariadb': ('REPEATABLE READ', 'READ COMMITTED'),
    'postgresql': ('READ COMMITTED',),
}


@dataclasses.dataclass(frozen=True)
class Variant:
    """A Placement.

    :param release: Which it is.
    :param change: What differs from its defaults.
    :param options: The arguments of ``placement_service.running`` for it.
    """

    release: str
    change: str = ''
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Row:
    """Rounds in which Placement accepted more claims than there are units.

    :param most: The largest number of claims that were accepted at once.
    """

    release: str
    change: str
    database: str
    level: str
    rounds: int
    oversold: int
    most: int


def main() -> None:
    """Try all of them."""
    options = table.parser('rounds', 12).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        rows = list(measure(folder, options.rounds))
    table.report(rows, options.csv)


def measure(folder: pathlib.Path, rounds: int) -> Iterator[Row]:
    """Yield a row for each variant, database and isolation level."""
    variants = [
        *(
            Variant(release, options={'prefix': install(folder, release)})
            for release in OLDER
        ),
        Variant(metadata.version('openstack-placement')),
        Variant(
            metadata.version('openstack-placement'),
            'allocation_conflict_retry_count = 1',
            {'retries': 1},
        ),
        Variant(
            metadata.version('openstack-placement'),
            'with the patch',
            {'packages': patched(folder)},
        ),
    ]
    for database, kind in database_servers.KINDS.items():
        server = kind(folder / database, database_servers.free_port())
        server.start()
        try:
            for level in LEVELS[database]:
                for variant in variants:
                    yield tried(
                        folder, server, database, level, variant, rounds
                    )
        finally:
            server.stop()


def install(folder: pathlib.Path, release: str) -> pathlib.Path:
    """Install a release of Placement; return the folder of its environment."""
    made = folder / f'placement-{release}'
    venv.create(made, with_pip=True)
    subprocess.run(
        [
            *(made / 'bin' / 'python', '-m', 'pip', 'install', '--quiet'),
            *(f'openstack-placement=={release}', 'gunicorn'),
            *('psycopg2-binary', 'pymysql'),
            # They read an option that 6.0 no longer has.
            'oslo.policy<6',
        ],
        check=True,
    )
    return made


def patched(folder: pathlib.Path) -> pathlib.Path:
    """Copy the installed Placement and apply the patch."""
    made = folder / 'patched'
    package = pathlib.Path(placement.__file__).parent
    shutil.copytree(package, made / 'placement')
    subprocess.run(
        ['git', 'apply', PATCH],
        cwd=made,
        # As if it were not in a git clone.
        env={'PATH': os.defpath, 'GIT_CEILING_DIRECTORIES': str(folder)},
        check=True,
    )
    return made


def tried(
    folder: pathlib.Path,
    server: database_servers.Server,
    database: str,
    level: str,
    variant: Variant,
    rounds: int,
) -> Row:
    """Run a Placement and claim from it."""
    own = pathlib.Path(tempfile.mkdtemp(dir=folder))
    init = f'SET SESSION TRANSACTION ISOLATION LEVEL {level}'
    options = {'init': init} if database == 'mariadb' else {}
    with running(server, own, **options, **variant.options) as service:
        service.call('PUT', f'/resource_classes/{CLASS}')
        accepted = [claimed_at_once(service) for _ in range(rounds)]
    return Row(
        variant.release,
        variant.change,
        database,
        level,
        rounds,
        sum(number > UNITS for number in accepted),
        max(accepted),
    )


def claimed_at_once(service: PlacementService) -> int:
    """Return how many clients get a unit of a new provider."""
    provider = service.provider({CLASS: UNITS})
    with futures.ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(lambda _: claim(service, provider), range(CLIENTS)))
    return service.usage(provider, CLASS)


def claim(service: PlacementService, provider: str) -> None:
    """Claim a unit once; a client whose connection breaks gives up."""
    with contextlib.suppress(exceptions.ConnectFailure):
        service.call(
            'PUT',
            f'/allocations/{uuid.uuid4()}',
            {
                'allocations': {provider: {'resources': {CLASS: 1}}},
                'project_id': 'project',
                'user_id': 'user',
                'consumer_generation': None,
                'consumer_type': 'INSTANCE',
            },
        )


if __name__ == '__main__':
    main()
