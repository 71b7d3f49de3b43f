# SPDX-License-Identifier: Apache-2.0
"""How long ``decision list`` takes for a long log.

    python tools/benchmarks/decision_logs.py [--csv FILE] [lines ...]

Each line is a record of about 1,600 characters, in plain text (``plain``), in
oslo.log's JSON (``json``), or of filters in shadow, a tenth of which would
have ended without a host (``shadow``). ``mixed`` is a log in which each tenth
line is a record. The records are of 50 locks, 1,000 projects and 100 flavors.
Another process invents the lines. Times are processor time with the document
for ``-f json``; memory is the peak of the process.
"""

from collections.abc import Iterator
import json
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import table

from isolate_aggregates.record import LOGGER, SCHEMA, Entry, line_of
from isolate_aggregates_tools import documents
from isolate_aggregates_tools.commands import decisions
from isolate_aggregates_tools.decisions import logs
from isolate_aggregates_tools.decisions.sums import Sums

FIELDS = ('lines', 'kind', 'records', 'seconds', 'mebibytes')
KINDS = ('plain', 'json', 'mixed', 'shadow')
_TIME = '2026-11-28 10:58:19.986'
_OTHER = (
    f'{_TIME} 7 DEBUG nova.scheduler.manager [None req-1 u p '
    '- - default default] Weighed [] select_destinations '
    '/usr/lib/python3/dist-packages/nova/scheduler/manager.py:641'
)


def record(number: int, is_shadow: bool) -> dict[str, Any]:
    """Return a record; each number has another server."""
    lock = number % 50
    aggregates = [
        {
            'uuid': f'{each:08x}-0000-4000-8000-000000000000',
            'name': f'aggregate-{each}',
            'locks': [f'trait:CUSTOM_{each}=required'],
        }
        for each in range(lock, lock + 5)
    ]
    closing = {
        f'host-{each}': [{'filter': 'isolate_aggregates', **aggregates[each]}]
        for each in range(3)
    }
    flavor = number % 100
    found: dict[str, Any] = {
        'schema': SCHEMA,
        'at': f'2026-11-{number % 28 + 1:02}T10:58:19.986+00:00',
        'request': f'req-{number:08x}-0000-4000-8000-000000000000',
        'server': f'{number:08x}-0000-4000-8000-000000000001',
        'project': f'{number % 1000:032x}',
        'operation': 'boot',
        'flavor': {'id': f'flavor-{flavor}', 'name': f'm1.{flavor}'},
        'config': 'b57b0e307653',
        'keys': {'extra_specs': {'trait:CUSTOM_X': 'required'}},
        'locks': [
            Entry(
                filter='isolate_aggregates',
                cause='missing-traits',
                aggregates=700,
                some=aggregates,
            )
        ],
        'took_ms': 31.4,
    }
    if not is_shadow:
        detail = {'room': True, 'hosts': closing}
        return found | {
            'result': 'no_host', 'cause': 'locked', 'detail': detail
        }  # fmt: skip
    effect = 'other_host' if number % 10 else 'no_host'
    shadow = {'effect': effect, 'would_exclude': closing}
    return found | {'result': 'placed', 'hosts': ['host-0'], 'shadow': shadow}


def invented(lines: int, kind: str) -> Iterator[str]:
    """Yield the lines of a log."""
    header = f'{_TIME} 7 INFO {LOGGER} [None req-1 u p - - -] '
    for number in range(lines):
        if kind == 'mixed' and number % 10:
            yield _OTHER
            continue
        text = line_of(record(number, kind == 'shadow'))
        if kind == 'json':
            yield json.dumps(
                {'message': text, 'asctime': _TIME, 'name': LOGGER}
                | {'msg': '%s', 'args': [text], 'levelname': 'INFO'}
            )
        else:
            yield header + text


def measure(lines: int, kind: str) -> dict[str, object]:
    """Return the costs of one log."""
    with tempfile.NamedTemporaryFile() as log:
        # Before, as processors share what is faster than memory.
        subprocess.run(
            [sys.executable, __file__, 'invent', str(lines), kind],
            stdout=log,
            check=True,
        )
        start = time.process_time()
        sums, not_read = Sums(kind == 'shadow'), logs.NotRead()
        for found in logs.records([log.name], not_read):
            sums.add(found)
        json.dumps(documents.content(decisions.document(sums, not_read)))
        seconds = time.process_time() - start
    return {
        'lines': lines,
        'kind': kind,
        'records': sums.records,
        'seconds': round(seconds, 1),
        'mebibytes': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        // 1024,
    }


if __name__ == '__main__':
    if sys.argv[1:2] == ['invent']:
        for line in invented(int(sys.argv[2]), sys.argv[3]):
            sys.stdout.write(f'{line}\n')
    else:
        table.measure_apart(
            __doc__, 'lines', [100_000, 1_000_000], measure, FIELDS, KINDS
        )
