# SPDX-License-Identifier: Apache-2.0
"""No command replaces a file that it has not written."""

import pathlib

import pytest

from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools import files
from isolate_aggregates_tools.ledger.writer import LedgerWriter

ROOT = pathlib.Path(__file__).parents[3]
CLOUD = 'examples/hosting.yaml'
EXPECTATIONS = 'examples/expectations/hosting.yaml'
HELD = 'was not written by this command; remove it or name another file'


@pytest.fixture
def copies(tmp_path):
    """Copies of a cloud file and of its expectations."""
    result = {}
    for name, source in {'C': CLOUD, 'E': EXPECTATIONS}.items():
        result[name] = tmp_path / f'{name}.yaml'
        result[name].write_bytes((ROOT / source).read_bytes())
    return result


@pytest.mark.parametrize(
    'line',
    [
        'report save --snapshot C --output C',
        'report save --snapshot C --output E',
        'exporter --output C --snapshot C',
        'exporter --output E --snapshot C',
        'test E --snapshot C --output E',
        'test E --snapshot C --output C',
        'test --init --output E --snapshot C',
    ],
)
def test_an_input_is_not_replaced(run, copies, line):
    before = {name: path.read_bytes() for name, path in copies.items()}
    words = [str(copies.get(word, word)) for word in line.split()]
    result = run(*words)
    assert (result.code, result.out) == (1, '')
    assert 'exists already' in result.err
    assert before == {name: p.read_bytes() for name, p in copies.items()}


@pytest.mark.parametrize(
    'line',
    [
        'report save --snapshot C --output OUT',
        'exporter --output OUT --snapshot C',
        'test E --snapshot C --output OUT',
    ],
)
def test_an_earlier_output_is_replaced_and_no_other(
    run, copies, tmp_path, line
):
    out = tmp_path / 'out'
    # As mktemp makes it.
    out.touch()
    words = [
        str({**copies, 'OUT': out}.get(word, word)) for word in line.split()
    ]
    for _ in range(2):
        assert run(*words).err == ''
        assert out.stat().st_size
    out.write_text('a letter\n')
    result = run(*words)
    assert result.code == 1
    assert HELD in result.err
    assert out.read_text() == 'a letter\n'


def test_metrics_of_sync_are_not_those_of_the_exporter(run, copies, tmp_path):
    from isolate_aggregates_tools.metrics import last_sync

    out = tmp_path / 'sync.prom'
    last_sync.write(str(out), 1.0)
    last_sync.write(str(out), 2.0)
    before = out.read_text()
    result = run(
        *('exporter', '--output', str(out), '--sync-textfile', str(out)),
        *('--snapshot', str(copies['C'])),
    )
    assert HELD in result.err
    assert out.read_text() == before


def test_a_file_without_a_mark_is_never_replaced(tmp_path):
    path = tmp_path / 'file'
    path.touch()
    with (
        pytest.raises(FileExistsError, match='it exists already'),
        files.replacing(path, None),
    ):
        pass


def test_a_ledger_is_not_appended_to_another_file(copies):
    before = copies['C'].read_bytes()
    with pytest.raises(tools_errors.LedgerError, match='is no ledger'):
        LedgerWriter(copies['C'], 60)
    assert copies['C'].read_bytes() == before
