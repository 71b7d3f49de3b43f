# SPDX-License-Identifier: Apache-2.0
"""A ledger file loses nothing but what it says is missing."""

import errno
import os
import pathlib
import stat
import tracemalloc

import pytest

from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.ledger import chain, history
from isolate_aggregates_tools.ledger.state import (
    AggregateState,
    HostState,
    Placement,
    State,
)
from isolate_aggregates_tools.ledger.stays import Span
from isolate_aggregates_tools.ledger.writer import QUIET, LedgerWriter

MINUTE = 60
LOCK = 'trait:CUSTOM_LICENSED'


def on(host, launched=None, keys=(LOCK,)):
    return Placement(host, 'project', 'large', 4, keys, launched)


def state(hosts=('a',), **servers):
    return State(
        {'uuid': AggregateState('licensed', tuple(hosts), {LOCK: 'required'})},
        {'a': HostState(2, 32, ()), 'b': HostState(None, None, ())},
        {name: on(host) for name, host in servers.items()},
    )


def locked(state):
    """The hosts of all aggregates."""
    return {h for each in state.aggregates.values() for h in each.hosts}


class Clock:
    """A clock that tests move."""

    def __init__(self):
        self.now = 10**6

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'ledger.jsonl'


@pytest.fixture
def write(path, clock):
    """Write a ledger: each state a minute after the last one."""

    def write(*states, **options):
        writer = LedgerWriter(path, MINUTE, clock=clock, **options)
        for each in states:
            writer.look(each)
            clock.now += MINUTE
        return writer

    return write


def read(path):
    return history.read(path, locked)


def stays(record):
    return {
        (s.server, s.host, s.start, s.start_by, s.end_from, s.end)
        for s in record.stays
    }


def test_each_move_is_bounded_by_the_looks_around_it(path, write):
    write(state(), state(one='a'), state(one='b'), state()).close()
    t = 10**6
    assert stays(read(path)) == {
        ('one', 'a', t, t + 60, t + 60, t + 120),
        ('one', 'b', t + 60, t + 120, t + 120, t + 180),
    }


def test_a_launch_between_two_looks_is_known_to_the_second(path, write):
    launched = State(servers={'one': on('a', 10**6 + 17)})
    write(State(), launched).close()
    [stay] = read(path).stays
    assert (stay.start, stay.start_by) == (10**6 + 17, None)


def test_one_server_goes_as_another_comes(path, write):
    write(state(one='a'), state(two='a')).close()
    assert {(s.server, s.end) for s in read(path).stays} == {
        ('one', 10**6 + 60),
        ('two', 10**6 + 60),
    }


def test_a_new_file_is_synced_with_its_folder(write, monkeypatch):
    synced = []
    monkeypatch.setattr(
        os,
        'fsync',
        lambda fd: synced.append(stat.S_ISDIR(os.fstat(fd).st_mode)),
    )
    write(state(), state(one='a')).close()
    assert synced == [False, True, False]


def test_nothing_is_written_while_nothing_changes(path, write):
    writer = write(*[state(one='a')] * (QUIET // MINUTE))
    assert len(list(chain.lines(path))) == 1
    writer.look(state(one='a'))
    assert len(list(chain.lines(path))) == 2


def test_the_end_of_a_quiet_time_is_the_last_look(path, write):
    write(*[state(one='a')] * 10).close()
    assert read(path).looks == [Span(10**6, 10**6 + 9 * MINUTE)]


def test_a_pause_of_the_program_is_a_gap(path, write, clock):
    writer = write(state(one='a'))
    clock.now += 10 * MINUTE
    writer.look(state(one='a'))
    writer.close()
    record = read(path)
    t = 10**6
    assert history.gaps_between(record.looks, t, clock.now) == [
        Span(t, clock.now)
    ]
    # It may have been elsewhere, but was seen nowhere else.
    assert {s.host for s in record.stays} == {'a'}


@pytest.mark.parametrize('two', [state(one='a'), state(one='b')])
@pytest.mark.parametrize(('late', 'gaps'), [(0, 0), (1, 1)])
def test_a_look_may_be_late_by_an_interval(
    path, write, clock, two, late, gaps
):
    writer = write(state(one='a'))
    clock.now += MINUTE + late
    writer.look(two)
    is_told = late or two != state(one='a')
    assert len(list(chain.lines(path))) == (2 if is_told else 1)
    writer.close()
    looks = read(path).looks
    assert len(looks) == 1 + gaps
    assert len(history.gaps_between(looks, 10**6, clock.now)) == gaps


@pytest.mark.parametrize(
    ('looks', 'gaps'),
    [
        ([], [(0, 9)]),
        ([(2, 4)], [(0, 2), (4, 9)]),
        ([(5, 7), (0, 4)], [(4, 5), (7, 9)]),
        ([(0, 4), (2, 3), (4, 9)], []),
        ([(-5, 20)], []),
        ([(12, 20)], [(0, 9)]),
        ([(3, None)], [(0, 3), (3, 9)]),
    ],
)
def test_the_gaps_between_looks(looks, gaps):
    found = history.gaps_between([Span(*look) for look in looks], 0, 9)
    assert found == [Span(*gap) for gap in gaps]


def test_hosts_are_usable_from_the_look_before_to_that_after(path, write):
    write(state(['a']), state(['a', 'b']), state(['a'])).close()
    t = 10**6
    assert read(path).could == {
        'a': [Span(t, t + 121)],
        'b': [Span(t, t + 121)],
    }


def test_two_processes_cannot_write_one_file(path, write):
    writer = write(state())
    with pytest.raises(tools_errors.LedgerError) as caught:
        LedgerWriter(path, MINUTE)
    assert str(caught.value) == (
        f'Ledger file {path}: another process writes it; use another file.'
    )
    writer.close()
    LedgerWriter(path, MINUTE).close()


def test_a_look_that_ends_after_the_program_is_not_written(path, write):
    """Another program may write the file already."""
    writer = write(state(one='a'))
    writer.close()
    writer.look(state(one='b'))
    assert len(list(chain.lines(path))) == 1


def test_a_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(tools_errors.LedgerError, match='No such file'):
        LedgerWriter(tmp_path / 'none' / 'ledger.jsonl', MINUTE)


def test_a_crash_in_a_line_loses_that_line_alone(path, write, clock):
    """At every byte of the line."""
    write(state(one='a'), state(one='a', two='b')).close()
    whole = path.read_bytes()
    first = whole.index(b'\n') + 1
    begun = clock.now
    for size in range(first + 1, len(whole)):
        path.write_bytes(whole[:size])
        clock.now = begun
        write(state(one='b'), state()).close()
        record = read(path)
        cut = size < len(whole) - 1
        assert [('cut off' in p) for p in record.problems] == [True] * cut
        assert record.lines == 4 - cut
        hosts = {(s.server, s.host) for s in record.stays}
        assert hosts == {('one', 'a'), ('one', 'b')} | (
            set() if cut else {('two', 'b')}
        )


@pytest.mark.parametrize('number', [1, 2, 3])
def test_an_omitted_line_shows(path, write, number):
    write(
        state(one='a'), state(one='b'), state(two='a'), state(two='b'), state()
    ).close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b''.join(lines[:number] + lines[number + 1 :]))
    record = read(path)
    [problem] = record.problems
    assert f'line {number + 1}: the line before it is missing' in problem
    # The state is not known until it is written as a whole.
    assert [look.end for look in record.looks] == [
        10**6 + (number - 1) * MINUTE
    ]


def test_a_changed_line_shows(path, write):
    write(state(one='a'), state(one='b'), state()).close()
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"host":"b"', b'"host":"c"')
    path.write_bytes(b''.join(lines))
    [problem] = read(path).problems
    assert 'line 3: the line before it is missing or was changed' in problem


def test_a_file_that_is_full_is_rotated(path, write):
    write(
        *(state(one=host) for host in 'abab'), state(two='a'), size=1
    ).close()
    files = chain.files(path)
    assert [file.name for file in files] == [
        'ledger.jsonl.1',
        'ledger.jsonl.2',
        'ledger.jsonl.3',
        'ledger.jsonl.4',
        'ledger.jsonl',
    ]
    record = read(path)
    assert record.problems == []
    assert len(record.stays) == 5
    files[0].unlink()
    [problem] = read(path).problems
    assert 'the lines of the ledger before line 2 are missing' in problem


def test_a_crash_after_the_rename_of_a_rotation(path, write):
    write(state(one='a'), state(one='b')).close()
    path.rename(chain.rotated(path))
    write(state(one='b')).close()
    record = read(path)
    assert (record.problems, record.lines) == ([], 3)


@pytest.mark.parametrize(
    ('text', 'last'),
    [
        (b'', (None, True)),
        (b'a', (b'a', False)),
        (b'a\n', (b'a', True)),
        (b'a\nbc', (b'bc', False)),
        (b'a\nbc\n', (b'bc', True)),
        (b'\nbc', (b'bc', False)),
    ],
)
def test_the_last_line_of_a_file(path, text, last):
    path.write_bytes(text)
    assert chain._last_line(path) == last


def test_the_end_of_a_ledger_is_that_of_the_newest_file_with_a_line(
    path, write
):
    write(state(one='a'), state(one='b')).close()
    last = path.read_bytes().splitlines()[-1]
    path.rename(chain.rotated(path))
    path.touch()
    assert chain.tail(path) == chain.Tail(chain.digest(last), 2)


@pytest.mark.parametrize(
    ('text', 'number'),
    [
        ('{"line":1}\n{"li', 1),
        ('{"li', 0),
        ('{"line":3}\n{}\n{"li', 3),
    ],
)
def test_the_number_of_the_last_whole_line(path, text, number):
    path.write_text(text)
    tail = chain.tail(path)
    assert (tail.number, tail.is_broken) == (number, True)


@pytest.mark.parametrize(('more', 'files'), [(0, 2), (1, 1)])
def test_a_file_of_its_size_is_full(path, write, more, files):
    write(state(one='a')).close()
    size = path.stat().st_size + more
    path.unlink()
    write(state(one='a'), state(one='b'), size=size).close()
    assert len(chain.files(path)) == files


def test_the_digests_are_those_of_the_first_and_the_last_line(path, write):
    write(state(one='a'), state(one='b'), state()).close()
    first, _, last = map(chain.digest, path.read_bytes().splitlines())
    assert read(path).digests == (first, last)


def test_another_key_is_no_new_stay_if_the_server_counts_as_before(
    path, write
):
    write(*(State(servers={'one': on('a', keys=k)}) for k in ((LOCK,), ())))
    assert stays(read(path)) == {
        ('one', 'a', 10**6, 10**6, 10**6 + 60, 10**6 + 60)
    }
    counted = history.read(path, locked, lambda placement: placement.keys)
    assert stays(counted) == {('one', 'a', 10**6, 10**6, 10**6, 10**6 + 60)}


def test_a_clock_that_goes_back_moves_no_look(path, write, clock):
    writer = write(State(), State())
    clock.now -= 2 * MINUTE + 10
    writer.look(State())
    clock.now += MINUTE
    writer.look(state(one='a'))
    writer.close()
    [stay] = read(path).stays
    assert stay.start == 10**6


@pytest.mark.parametrize('keys', [None, (), (LOCK,)])
def test_keys_that_are_not_known_stay_so(path, write, keys):
    write(State(servers={'one': on('a', keys=keys)})).close()
    [stay] = read(path).stays
    assert stay.keys == (None if keys is None else frozenset(keys))


@pytest.mark.parametrize('done', [0, 1, 50])
def test_a_full_disk_is_a_gap(path, write, clock, monkeypatch, done):
    """The next look writes everything again."""
    writer = write(state(one='a'))
    real = os.write

    def fail(descriptor, data):
        if len(data) > done and done:
            return real(descriptor, bytes(data[:done])) and full()
        return full()

    def full():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, 'write', fail)
        with pytest.raises(tools_errors.LedgerError, match='No space left'):
            writer.look(state(one='b'))
    clock.now += MINUTE
    writer.look(state(two='a'))
    writer.close()
    record = read(path)
    assert len(record.problems) == bool(done)
    assert {s.server for s in record.stays} == {'one', 'two'}


def test_what_is_no_ledger_is_refused(path):
    with pytest.raises(tools_errors.LedgerError, match='no such file'):
        read(path)
    path.write_text('{"line": 1}\nnothing\n')
    with pytest.raises(tools_errors.LedgerError, match='it has no valid line'):
        read(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(tools_errors.LedgerError, match='Is a directory'):
        read(path)


def test_memory_is_flat(path, clock):
    """However long it runs, a writer remembers only the last state."""
    writer = LedgerWriter(path, MINUTE, clock=clock, size=2**16)

    def look(number):
        clock.now += MINUTE
        writer.look(state(**{f'server-{number}': 'a', 'other': 'b'}))

    for number in range(100):
        look(number)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(2000):
        look(number)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    writer.close()
    assert after - before < 50_000
    assert len(chain.files(path)) > 1


def test_the_lock_and_the_file_are_private(path, write):
    write(state()).close()
    for file in (path, pathlib.Path(f'{path}.lock')):
        assert file.stat().st_mode & 0o777 == 0o600
