# SPDX-License-Identifier: Apache-2.0
"""How long the ledger of a year takes.

    python tools/benchmarks/ledger.py [--csv FILE] [servers ...]

In a year, each server is booted at a random time; a fifth of them exist at the
end. Each tenth is moved twice. There is a host for each 100 servers, and all
are in the locked aggregate. ``nova`` reads what Nova's API answers, which the
process invents itself as JSON; ``file`` reads a ledger file with a line for
each move. Both include the document for ``-f json``. Times are processor time,
also of the invented answers; memory is the peak of the process.
"""

from collections.abc import Iterator
import datetime
import json
import pathlib
import random
import resource
import tempfile
import time
from typing import Any
from urllib import parse

from oslo_config import cfg
import table

from isolate_aggregates import options as tools_options
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Image
from isolate_aggregates.rest.client import Service
from isolate_aggregates_tools import documents, errors
from isolate_aggregates_tools.ledger import (
    chain,
    history,
    ledger,
    reading,
    shown,
)
from isolate_aggregates_tools.ledger.days import DAY
from isolate_aggregates_tools.ledger.keys import Keys
from isolate_aggregates_tools.ledger.ledger import Subject, UsableHosts
from isolate_aggregates_tools.ledger.state import (
    AggregateState,
    Placement,
    State,
)
from isolate_aggregates_tools.ledger.stays import Span
from isolate_aggregates_tools.ledger.times import as_text

FIELDS = ('servers', 'source', 'stays', 'host_days', 'seconds', 'mebibytes')
LOCK = 'trait:CUSTOM_LICENSED'
SUBJECT = Subject('lock', LOCK, LOCK)
SINCE = int(datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).timestamp())
UNTIL = SINCE + 365 * DAY
PAGE = 1000


def server_id(number: int) -> str:
    return f'00000000-0000-4000-8000-{number:012x}'


def stamp(seconds: int) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime('%Y-%m-%dT%H:%M:%S')


def lives(servers: int) -> list[tuple[int, int | None, list[int]]]:
    """Return when each server began and ended, and its hosts."""
    chance = random.Random(servers)
    hosts = max(2, servers // 100)
    result: list[tuple[int, int | None, list[int]]] = []
    for number in range(servers):
        start = chance.randrange(SINCE, UNTIL - DAY)
        end = None if number % 5 == 0 else chance.randrange(start, UNTIL)
        places = [chance.randrange(hosts)]
        if number % 10 == 0:
            places += [(places[0] + 1) % hosts, places[0]]
        result.append((start, end, places))
    return result


class InventedNova:
    """A Nova that is asked for the past."""

    for_servers = '2.96'
    endpoint = 'none'

    def __init__(self, servers: int) -> None:
        self._lives = lives(servers)
        self.direct = self

    paged = Service.paged

    def parsed(self, path: str, parser: Any, document: Any) -> Any:
        return parser(document)

    def get(self, path: str, microversion: str) -> Any:
        """Answer a request, by way of JSON."""
        return json.loads(json.dumps(self._answer(path)))

    def _answer(self, path: str) -> Any:
        parts = parse.urlsplit(path)
        query = dict(parse.parse_qsl(parts.query))
        words = parts.path.strip('/').split('/')
        if words == ['servers', 'detail']:
            is_deleted = query.get('deleted') == 'True'
            first = int(query.get('marker', '-1')[-12:], 16) + 1
            numbers = [
                number
                for number in range(first, min(first + 5 * PAGE, self.size))
                if (self._lives[number][1] is not None) == is_deleted
            ]
            return {'servers': [self._server(n) for n in numbers[:PAGE]]}
        if words == ['servers']:
            return {'servers': []}
        if words == ['os-migrations']:
            first = int(query.get('marker', '-1')) + 1
            moved = range(0, self.size, 10)[first : first + PAGE]
            return {'migrations': [self._migration(n) for n in moved]}
        number = int(words[1][-12:], 16)
        if len(words) == 3:
            if 'marker' in query:
                return {'instanceActions': []}
            return {'instanceActions': list(self._actions(number))}
        return {'instanceAction': {'events': self._events(number, words[3])}}

    @property
    def size(self) -> int:
        return len(self._lives)

    def _server(self, number: int) -> dict[str, Any]:
        start, end, places = self._lives[number]
        return {
            'id': server_id(number),
            'name': f'server-{number}',
            'tenant_id': f'project-{number % 100}',
            'status': 'ACTIVE' if end is None else 'DELETED',
            'OS-EXT-SRV-ATTR:host': f'cn-{places[-1]:05}',
            'OS-EXT-AZ:availability_zone': 'nova',
            'pinned_availability_zone': None,
            'created': stamp(start),
            'updated': stamp(end or start),
            'OS-SRV-USG:launched_at': stamp(start),
            'OS-SRV-USG:terminated_at': end and stamp(end),
            'image': {'id': 'image'},
            'flavor': {
                'original_name': 'large',
                'vcpus': 4,
                'ram': 1024,
                'disk': 10,
                'ephemeral': 0,
                'swap': 0,
                'extra_specs': {LOCK: 'required'},
            },
        }

    def _migration(self, number: int) -> dict[str, Any]:
        start, _, places = self._lives[number]
        return {
            'uuid': str(number // 10),
            'instance_uuid': server_id(number),
            'migration_type': 'live-migration',
            'status': 'completed',
            'source_compute': f'cn-{places[0]:05}',
            'dest_compute': f'cn-{places[1]:05}',
            'created_at': stamp(start),
            'updated_at': stamp(start),
            'old_instance_type_id': 1,
            'new_instance_type_id': 1,
        }

    def _steps(self, number: int) -> Iterator[tuple[str, int, int]]:
        """Yield the actions of a server with their times and hosts."""
        start, end, places = self._lives[number]
        names = ('create', 'live-migration', 'live-migration')
        length = ((end or UNTIL) - start) // 3
        for step, place in enumerate(places):
            yield names[step], start + step * length, place

    def _actions(self, number: int) -> Iterator[dict[str, Any]]:
        for step, (name, at, _) in enumerate(self._steps(number)):
            yield {
                'action': name,
                'request_id': f'req-{step}',
                'start_time': stamp(at),
            }

    def _events(self, number: int, request: str) -> list[dict[str, Any]]:
        step = int(request.removeprefix('req-'))
        name, at, place = list(self._steps(number))[step]
        event = {
            'create': 'compute__do_build_and_run_instance',
            'live-migration': 'compute_post_live_migration_at_destination',
        }[name]
        return [
            {
                'event': event,
                'host': f'cn-{place:05}',
                'start_time': stamp(at),
                'finish_time': stamp(at),
                'result': 'Success',
            }
        ]


def configuration() -> cfg.ConfigOpts:
    """Return the settings of a nova-scheduler that isolates."""
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    return conf


def state(servers: int) -> State:
    """Return the locked aggregate."""
    hosts = tuple(f'cn-{n:05}' for n in range(max(2, servers // 100)))
    return State({'uuid': AggregateState('locked', hosts, {LOCK: 'required'})})


def _no_image(image_id: str) -> Image:
    raise errors.NotFound('image', image_id, 'Glance')


def from_nova(servers: int) -> dict[str, Any]:
    """Make a ledger of what Nova answers."""
    aggregate = Aggregate('uuid', 'locked', {LOCK: 'required'})
    nova: Any = InventedNova(servers)
    start = time.process_time()
    stays = reading.NovaStays(
        nova,
        Keys(configuration(), [aggregate], _no_image),
        SINCE,
        SUBJECT.counts_stay,
    )
    stays.read(UNTIL)
    hosts = state(servers).aggregates['uuid'].hosts
    return _document(
        start,
        list(stays.stays),
        {host: [Span(UNTIL - 1, UNTIL)] for host in hosts},
        [Span(UNTIL - 1, UNTIL)],
    )


def write(path: pathlib.Path, servers: int) -> None:
    """Write a ledger file with a line for each move."""
    moves: list[tuple[int, int, int | None]] = []
    for number, (start, end, places) in enumerate(lives(servers)):
        length = ((end or UNTIL) - start) // 3
        for step, place in enumerate(places):
            moves.append((start + step * length, number, place))
        if end is not None:
            moves.append((end, number, None))
    # As LedgerWriter does, which compares whole states: a year of looks would
    # take a year.
    last = None
    before = SINCE
    moves.sort(key=lambda move: move[:2])
    with path.open('wb') as stream:
        changes: dict[str, Any] = state(servers).changes(None)
        for at, number, place in [
            (SINCE, -1, None),
            *sorted(moves, key=lambda move: move[:2]),
        ]:
            if number >= 0:
                placement = (
                    Placement(
                        f'cn-{place:05}', 'project', 'large', 4, (LOCK,), at
                    )._asdict()
                    if place is not None
                    else None
                )
                changes = {'servers': {server_id(number): placement}}
            line = chain.encode(
                {
                    'line': 1,
                    'time': as_text(at),
                    'before': as_text(before),
                    'interval': 10**6,
                    'last': last,
                    'full': number < 0,
                    **changes,
                }
            )
            stream.write(line + b'\n')
            last, before = chain.digest(line), at


def from_file(servers: int) -> dict[str, Any]:
    """Make a ledger of a ledger file."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'ledger.jsonl'
        write(path, servers)
        start = time.process_time()
        usable = UsableHosts(configuration(), SUBJECT)
        record = history.read(path, usable.of, SUBJECT.counts)
        return _document(start, record.stays, record.could, record.looks)


def _document(
    start: float, stays: Any, could: Any, looks: Any
) -> dict[str, Any]:
    result = ledger.make(
        SUBJECT, (SINCE, UNTIL), stays, could, looks, {}, [], [], True
    )
    document = documents.content(
        shown.document(result, list(result.days), None)
    )
    json.dumps(document)
    return {
        'stays': len(document['stays']),
        'host_days': len(document['days']),
        'seconds': round(time.process_time() - start, 1),
        'mebibytes': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        // 1024,
    }


def measure(servers: int, source: str) -> dict[str, object]:
    """Return the costs of one ledger."""
    make = {'nova': from_nova, 'file': from_file}[source]
    return {'servers': servers, 'source': source, **make(servers)}


if __name__ == '__main__':
    table.measure_apart(
        __doc__,
        'servers',
        [1_000, 10_000, 100_000],
        measure,
        FIELDS,
        ('nova', 'file'),
    )
