# SPDX-License-Identifier: Apache-2.0
"""Creates tables of the benchmark results for the documentation.

    python tools/tables.py

Reads their results and writes ``doc/source/tables``, which pages take
in with ``csv-table``. Needs nothing but Python.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import csv
import io
import pathlib

from plot import DATABASES, ROOT, results, shown

TABLES = ROOT / 'doc' / 'source' / 'tables'

Row = Mapping[str, str]
# Column headers, with functions that format the cell of a row.
Columns = Mapping[str, Callable[[Row], str]]


def number(name: str) -> Callable[[Row], str]:
    """Return the formatter of a column of integers."""
    return lambda row: f'{float(row[name]):,.0f}'


def amount(name: str, factor: float = 1.0) -> Callable[[Row], str]:
    """Return the formatter of a column of amounts."""
    return lambda row: shown(factor * float(row[name])) if row[name] else '-'


def text(name: str) -> Callable[[Row], str]:
    """Return the formatter of a column of text."""
    return lambda row: row[name]


def threads(name: str) -> Callable[[Row], str]:
    """Return the formatter of the rates by number of threads."""
    cells = [amount(f'{name}_{n}') for n in (1, 8, 32)]

    def write(row: Row) -> str:
        return ' / '.join(cell(row) for cell in cells)

    return write


def times(row: Row) -> str:
    """Return how many times faster ours is than Nova's own filter."""
    return f'{float(row["times"]):,.0f}x'


def query(which: str) -> Callable[[Row], str]:
    """Return the formatter of the length and the duration of a query."""
    length, took = number(f'bytes_{which}'), number(which)
    return lambda row: f'{length(row)} bytes, {took(row)} ms'


def database(row: Row) -> str:
    """Return the name of a database."""
    return DATABASES[row['database']]


def filters(row: Row) -> str:
    """Return which filters ran."""
    name = row['filters']
    return 'one' if name == 'isolate_aggregates' else name


OF_A_DATABASE: Columns = {
    'Database': database,
    'Aggregates': number('aggregates'),
    'Filters': filters,
}
CLOCK: Columns = {
    **OF_A_DATABASE,
    "Nova's own filter": amount('in_tree'),
    'without garbage collection': amount('in_tree_shortest'),
    'Ours, always fresh': amount('fresh'),
    'of which the database': amount('database_alone'),
    'Ours, remembered': amount('cached'),
    "Nova's own over ours, fresh": times,
}
PROCESSOR: Columns = {
    **OF_A_DATABASE,
    "Nova's own filter": amount('in_tree_processor'),
    'Ours, always fresh': amount('fresh_processor'),
    'Ours, remembered': amount('cached_processor'),
    'Remembered, ours alone': lambda row: f'{float(row["own"]):,.0f} us',
    'Aggregates of 1,000 hosts': amount('of_1000_hosts'),
}
RATES: Columns = {
    **OF_A_DATABASE,
    "Nova's own filter": threads('in_tree'),
    'Ours, always fresh': threads('fresh'),
    'Ours, remembered': threads('cached'),
}
COMPARED: Columns = {
    'Aggregates': number('aggregates'),
    'Nova': amount('in_tree'),
    'isolate-aggregates': amount('fresh'),
}
FILTERS: Columns = {
    'Aggregates': number('aggregates'),
    "Nova's own": amount('in_tree'),
    'Fresh': amount('fresh'),
    'Fresh, without rollups': amount('fresh_all'),
    'Remembered': amount('cached'),
    'Remembered, without rollups': amount('cached_all'),
    'Required traits and uuids': amount('nova'),
}
LENGTH: Columns = {
    'Aggregates': number('aggregates'),
    'Keys of the server': text('keys'),
    'Hosts found': number('hosts'),
    'Every aggregate named': query('all'),
    'With rollups': query('rollups'),
}
SCHEDULER: Columns = {
    'Aggregates': number('aggregates'),
    'No isolation': amount('no_isolation'),
    "Nova's own": amount('in_tree'),
    'Fresh': amount('ours'),
    'Remembered': amount('remembered'),
    'Fresh, without rollups': amount('no_rollup'),
}


def work(name: str, calls: str) -> Callable[[Row], str]:
    """Return the formatter of the duration and the calls of a command."""
    took, counted = amount(name), number(calls)
    return lambda row: f'{took(row)} s, {counted(row)}'


HOST_CHECK: Columns = {
    'Hosts': number('hosts'),
    'Aggregates': number('aggregates'),
    'Calls for the check': number('calls'),
    'No isolation': amount('no_isolation'),
    'With isolation': amount('ours'),
    'Filters': amount('filters'),
    'Longer query': amount('query'),
    'Check': amount('check'),
}
START: Columns = {
    'Command': lambda row: _COMMANDS.get(
        row['command'], f'``{row["command"]}``'
    ),
    'Before': amount('before'),
    'Now': amount('amount'),
    'Share': lambda row: shown(float(row['amount']) / float(row['before'])),
}
CALLS: Columns = {
    'Hosts': number('hosts'),
    'Resource providers': number('providers'),
    '``explain``': work('explain_seconds', 'explain'),
    '``lock list``': work('locks_seconds', 'locks'),
    'First reading': work('first_seconds', 'first'),
    'Nothing changed': work('unchanged_seconds', 'unchanged'),
    '1 % boots': work('boots_seconds', 'boots'),
    'Second ``audit``': work('command_seconds', 'command'),
    '``sync --watch``': work('sync_seconds', 'sync'),
    'Bytes for each provider': amount('memory'),
    'openstack-exporter': lambda row: f'{1 + 3 * int(row["providers"]):,}',
}
# Rows that are no commands, by their names in the results.
_COMMANDS = {'imports of Placement': 'What Placement imports'}
# What is asked, by its name in the results.
_QUESTIONS = {
    'empty': 'Empty a host',
    'rolling': 'Fifty hosts, one after another',
    'room': 'Room for ten large servers',
    'survive': 'Each host fails',
}

RELOCATE: Columns = {
    'Hosts': number('hosts'),
    'Servers': number('servers'),
    'Question': lambda row: _QUESTIONS[row['question']],
    'Moves': number('moves'),
    'At least': number('least'),
    'Left': number('left'),
    'Seconds of processor time': amount('seconds'),
    'MiB of memory': number('mebibytes'),
}
DECISIONS: Columns = {
    'Aggregates': number('aggregates'),
    'Without records': amount('none'),
    'failures, a host found': amount('failures'),
    'narrowed, a host found': amount('narrowed'),
    'failures, no host': amount('failed'),
    'Shadow': amount('shadow'),
    'Shadow, its own thread': amount('behind'),
}
EFFECT: Columns = {
    'Hosts': number('hosts'),
    'Servers': number('servers'),
    'Flavors': number('flavors'),
    'Aggregates': number('aggregates'),
    'Seconds of processor time': amount('seconds'),
    'MiB of memory': number('mebibytes'),
}
REHEARSALS: Columns = {
    'Tool': text('tool'),
    'Hosts': number('hosts'),
    'Flavors': number('flavors'),
    'Seconds': amount('seconds'),
    'Seconds of ``effect show``': amount('effect_seconds'),
    'Ratio': amount('ratio'),
    'MiB of memory': number('mebibytes'),
}

EXPECTATIONS: Columns = {
    'Hosts': number('hosts'),
    'Aggregates': number('aggregates'),
    'Flavors': number('flavors'),
    'Expectations': number('expectations'),
    'Seconds to test them': amount('test_seconds'),
    'Mutations': number('mutations'),
    'Seconds for all mutations': amount('mutate_seconds'),
}

INDEX: Columns = {
    '10,000 aggregates': text('what'),
    'Amount': lambda row: f'{shown(float(row["amount"]))} {row["unit"]}',
}


LEASES: Columns = {
    'Leases': number('leases'),
    'A request': amount('request'),
    'Just after a new lease': amount('after'),
    'More': amount('more'),
}
CANDIDATE_LIMIT: Columns = {
    'Hosts': number('hosts'),
    'That the flavor wants': number('wanted'),
    'Candidates returned': number('limit'),
    'Requests': number('requests'),
    "No host by Nova's host filter": number('in_tree'),
    'No host by the request filter': number('ours'),
}
SLOTS: Columns = {
    'Hosts': number('hosts'),
    'Locks': number('locks'),
    'One provider for each host': amount('without_numa'),
    'Two NUMA nodes below it': amount('with_numa'),
}
METRICS: Columns = {
    'Metrics': text('what'),
    'Microseconds': amount('cost'),
}


RESERVATIONS: Columns = {
    'Hosts': number('hosts'),
    'Reservations': number('reservations'),
    'Full': lambda row: 'yes' if row['full'] == 'True' else '-',
    'Plan': lambda row: f'{shown(1000 * float(row["plan"]))} ms',
    'Create one more': work('create', 'create_calls'),
    'Extend one': work('update', 'update_calls'),
    'List': work('list', 'list_calls'),
    'First round': work('first_round', 'first_calls'),
    'Next round': work('next_round', 'next_calls'),
    'One in 100 starts': work('starting', 'starting_calls'),
    'List needs': lambda row: f'{shown(float(row["memory"]))} MiB',
}


OF_A_SERVICE: Columns = {
    'Service': text('service'),
    'Done': number('done'),
    'Percent': number('percent'),
}
ENDURANCE: Columns = {
    **OF_A_SERVICE,
    'Request specs': number('requests'),
    'Indexes': number('indexes'),
    'Ours': number('ours'),
    'Objects': number('objects'),
    'Most grown': lambda row: row['most_grown'] or '-',
    'MiB': amount('rss'),
    'Threads': number('threads'),
    'Files': number('files'),
    'Databases': number('databases'),
    'TCP': number('connections'),
}
ENDURANCE_TIMES: Columns = {
    **OF_A_SERVICE,
    'Half of them at most': amount('p50'),
    '99 % at most': amount('p99'),
}
LEDGER: Columns = {
    'Servers': number('servers'),
    'Source': text('source'),
    'Stays': number('stays'),
    'Host days': number('host_days'),
    'Seconds': amount('seconds'),
    'MiB': number('mebibytes'),
}
DECISION_LOGS: Columns = {
    'Lines': number('lines'),
    'Log': text('kind'),
    'Records': number('records'),
    'Seconds': amount('seconds'),
    'MiB': number('mebibytes'),
}
INCIDENTS: Columns = {
    'Cause': lambda row: f'``{row["cause"]}``'.replace('``all``', 'all'),
    'Named by the record': number('incidents'),
    'Told by the former line': number('told'),
    'Lines that were cut': number('cut'),
}
RECORDS: Columns = {
    'Database': database,
    'Servers': number('servers'),
    'A record': amount('claim'),
    'by the clock': amount('clock'),
    'Only reading it': amount('select'),
    'One that is there': amount('again'),
    "Nova's load and save": amount('nova'),
    '``record``, s': amount('fill'),
    'again, s': amount('second'),
    '``forget``, s': amount('forget'),
    'More memory, MiB': amount('memory'),
}
OVERSOLD: Columns = {
    'Placement': text('release'),
    'Changed': lambda row: row['change'] or '-',
    'Database': database,
    'Isolation level': text('level'),
    'Rounds': number('rounds'),
    'Oversold': number('oversold'),
    'Most claims for three units': number('most'),
}
TROUBLE: Columns = {
    'State': text('state'),
    'Request': text('kind'),
    'Number': number('requests'),
    'Refused': number('refused'),
    'Half of them at most': amount('p50'),
    '99 % at most': amount('p99'),
}


def _of_size(
    hosts: int, name: str, factor: float = 1.0
) -> Callable[[Row], str]:
    """Return the formatter of an amount for one size of the cloud."""
    key = f'{hosts} {name}'
    formatter = amount(key, factor)
    return lambda row: formatter({key: row.get(key, '')})


SCALE: Columns = {
    'Command': text('command'),
    '100 hosts': _of_size(100, 'processor'),
    '1,000 hosts': _of_size(1_000, 'processor'),
    '10,000 hosts': _of_size(10_000, 'processor'),
    'Exponent': lambda row: f'{float(row["exponent"]):.2f}',
    'MiB': _of_size(10_000, 'memory'),
    'MB of output': _of_size(10_000, 'output', 1e-6),
}


def by_command(rows: Sequence[Row]) -> Sequence[Row]:
    """Return one row for each command, with the columns of each size.

    :param rows: The rows; of each command, the largest cloud last.
    """
    merged: dict[str, dict[str, str]] = {}
    for row in rows:
        of_command = merged.setdefault(row['command'], {})
        of_command['command'] = f'``{row["command"]}``'
        of_command['exponent'] = row['exponent']
        for name, value in row.items():
            of_command[f'{row["hosts"]} {name}'] = value
    return tuple(merged.values())


def tables() -> Iterator[tuple[pathlib.Path, str]]:
    """Yield the file of each table with its contents."""
    for name, columns, rows in _tables():
        yield TABLES / f'{name}.csv', _written(columns, rows)


def _tables() -> Iterator[tuple[str, Columns, Sequence[Row]]]:
    measured = results('databases')
    yield 'databases-clock', CLOCK, measured
    yield 'databases-processor', PROCESSOR, measured
    yield 'databases-threads', RATES, measured
    of_a_cloud = [
        row
        for row in measured
        if (row['database'], row['filters']) == ('mariadb', 'default')
    ]
    yield 'compared', COMPARED, of_a_cloud
    yield 'filters', FILTERS, results('filters')
    yield 'length', LENGTH, results('length')
    yield 'scheduler', SCHEDULER, results('scheduler')
    yield 'host-check', HOST_CHECK, results('host_check')
    yield 'calls', CALLS, results('calls')
    yield 'effect', EFFECT, results('effect')
    yield 'rehearsals', REHEARSALS, results('rehearsals')
    yield 'relocate', RELOCATE, results('relocate')
    yield 'ledger', LEDGER, results('ledger')
    yield 'decision-logs', DECISION_LOGS, results('decision_logs')
    yield 'expectations', EXPECTATIONS, results('expectations')
    yield 'start', START, results('start')
    yield 'index', INDEX, results('index')
    yield 'leases', LEASES, results('leases')
    yield 'candidate-limit', CANDIDATE_LIMIT, results('candidate_limit')
    yield 'slots', SLOTS, results('slots')
    yield 'metrics', METRICS, results('metrics')
    yield 'reservations', RESERVATIONS, results('reservations')
    endurance = results('endurance')
    yield 'endurance', ENDURANCE, endurance
    yield 'endurance-times', ENDURANCE_TIMES, endurance
    yield 'scale', SCALE, by_command(results('scale'))
    yield 'trouble', TROUBLE, results('trouble')
    yield 'incidents', INCIDENTS, results('incidents')
    yield 'decisions', DECISIONS, results('decisions')
    yield 'records', RECORDS, results('records')
    yield 'oversold', OVERSOLD, results('oversold')


def _written(columns: Columns, rows: Sequence[Row]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator='\n')
    writer.writerow(columns)
    for row in rows:
        writer.writerow(cell(row) for cell in columns.values())
    return file.getvalue()


def main() -> None:
    """Create all tables."""
    for path, written in tables():
        path.write_text(written, 'utf-8')
        print(path.relative_to(ROOT))


if __name__ == '__main__':
    main()
