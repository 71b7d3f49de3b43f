# SPDX-License-Identifier: Apache-2.0
"""``isolate-aggregates sync`` against a live cloud and over files.

Keystone and Nova answer as the real ones do, Placement is the real one.
"""

import dataclasses
import json
import os
import re
import signal
import sys
import time

import agreement
from cases import cases
from fake_nova import FakeNova
from http_fakes import CREDENTIALS, NOVA, FakeKeystone
import pytest
import requests_mock
from samples import parsed
import units
import yaml

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates_tools.compute.client import ComputeNode
from isolate_aggregates_tools.embedded import EmbeddedPlacement
from isolate_aggregates_tools.placement import edits, providers
from isolate_aggregates_tools.placement.client import PlacementClient

LICENSED = 'CUSTOM_LICENSED_WINDOWS'
MARK = f'CUSTOM_ISOLATE_SYNC_{LICENSED}'
UUIDS = {
    host: f'00000000-0000-4000-8000-00000000000{number}'
    for number, host in enumerate(('win-1', 'win-2', 'linux-1'), 1)
}
WIN_HOSTS = Aggregate(
    '2a451f34-a46c-59cb-8bd8-52a5c083071d',
    'win-hosts',
    {f'trait:{LICENSED}': 'required'},
    frozenset({'win-1', 'win-2'}),
    1,
)


answer = agreement.answer


@dataclasses.dataclass
class Live:
    """A live cloud whose Placement has none of the aggregates."""

    nova: FakeNova
    placement: PlacementClient
    url: str
    http: requests_mock.Mocker

    def traits(self, host):
        """Return the traits of a host."""
        return providers.traits(self.placement, UUIDS[host])

    def refuse(self, method, path, status):
        """Make Placement answer some calls with an error from now on."""
        self.http.register_uri(
            method,
            re.compile(f'{re.escape(self.url)}{path}'),
            status_code=status,
            json={'errors': [{'detail': 'Because.'}]},
        )


@pytest.fixture
def live(run, http, monkeypatch):
    """The cloud, with its credentials in the environment."""
    embedded = EmbeddedPlacement()
    adapter = embedded.open()
    url = adapter.get_endpoint()
    http.register_uri(
        requests_mock.ANY,
        requests_mock.ANY,
        real_http=True,
        additional_matcher=lambda request: request.url.startswith(url),
    )
    FakeKeystone(http, {'compute': NOVA, 'placement': url})
    nova = FakeNova(
        aggregates=[WIN_HOSTS],
        nodes=[ComputeNode(u, host, host) for host, u in UUIDS.items()],
    )
    nova.answer(http)
    placement = PlacementClient(adapter)
    for host, uuid in UUIDS.items():
        body = {'uuid': uuid, 'name': host}
        placement.send('POST', '/resource_providers', body)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(f'OS_{name.upper()}', value)
    yield Live(nova, placement, url, http)
    embedded.close()


def test_unused_marks_are_shown_before_they_are_deleted(run, live, answer):
    run('sync', '--yes')
    old = f'{MARK}_OLD'
    edits.create_trait(live.placement, old)
    told = f'trait {old}, which no longer marks anything'
    result = run('sync', '--dry-run', '--no-effect')
    assert (result.code, result.out) == (0, f'To be deleted: {told}.\n')
    answer('y\n')
    result = run('sync')
    assert (result.code, result.out) == (0, '')
    assert f'  delete {told}\n' in result.err
    assert run('sync', '--dry-run').out == 'Nothing to do.\n'


def test_a_dry_run_shows_the_plan_and_changes_nothing(run, live):
    result = run('sync', '-f', 'csv', '--quote', 'none')
    assert result.code == 3
    assert result.out.splitlines() == [
        'Host,Provider,Change,Why',
        'win-1,win-1,add aggregate win-hosts,the host is in it\\, but its '
        'resource provider is not',
        f'win-1,win-1,add trait {LICENSED},aggregate win-hosts requires it',
        'win-2,win-2,add aggregate win-hosts,the host is in it\\, but its '
        'resource provider is not',
        f'win-2,win-2,add trait {LICENSED},aggregate win-hosts requires it',
    ]
    assert live.traits('win-1') == frozenset()


def test_a_table_ends_with_a_summary(run, live):
    result = run('sync')
    assert result.code == 3
    assert result.out.splitlines()[-1] == (
        'Resource providers to be changed: 2 (add aggregate 2, add trait 2).'
    )


def test_a_plan_is_applied_once(run, live):
    planned = run('sync', '-f', 'value').out
    result = run('sync', '--yes', '-f', 'value')
    assert (result.code, result.out) == (0, planned)
    assert live.traits('win-1') == {LICENSED, MARK}
    assert live.traits('linux-1') == frozenset()
    for arguments, said in (
        (['sync'], 'Nothing to do.'),
        (['sync', '--yes'], 'Nothing was changed.'),
    ):
        result = run(*arguments)
        assert (result.code, result.out.strip()) == (0, said)


def test_traits_that_sync_added_are_removed_with_the_tag(run, live):
    run('sync', '--yes')
    live.nova.aggregates = [dataclasses.replace(WIN_HOSTS, metadata={})]
    result = run('sync', '--yes')
    assert result.code == 0
    assert result.out.splitlines()[-1] == (
        'Resource providers changed: 2 (remove trait 2).'
    )
    assert live.traits('win-1') == frozenset()


@pytest.mark.parametrize(
    ('formatter', 'load'), [('json', json.loads), ('yaml', yaml.safe_load)]
)
def test_json_and_yaml_have_one_document(run, live, formatter, load):
    live.nova.aggregates = [
        dataclasses.replace(WIN_HOSTS, hosts=frozenset({'win-1', 'gone'}))
    ]
    result = run(
        *('sync', '--dry-run', '--no-effect', '--no-mirror'),
        *('-f', formatter),
    )
    problem = (
        'aggregate win-hosts: host gone has no compute node with a resource '
        'provider; check that nova-compute runs there, or remove it from the '
        'aggregate'
    )
    assert load(result.out) == {
        'schema': 'isolate-aggregates/sync/1',
        'applied': False,
        'changes': [
            {
                'host': 'win-1',
                'provider': 'win-1',
                'action': 'add trait',
                'subject': LICENSED,
                'why': 'aggregate win-hosts requires it',
            }
        ],
        'tags': [],
        'problems': [problem],
        'failures': [],
        'effect': None,
    }
    assert result.err == f'{problem}.\n'


@pytest.mark.parametrize(
    ('argument', 'left'),
    [
        ('--no-mirror', {'add trait'}),
        ('--no-traits', {'add aggregate'}),
        ('--no-rollups', {'add trait', 'add aggregate'}),
    ],
)
def test_parts_can_be_disabled(run, live, argument, left):
    document = json.loads(run('sync', argument, '-f', 'json').out)
    assert {change['action'] for change in document['changes']} == left


def test_a_failed_provider_is_reported_and_the_others_change(run, live):
    live.refuse('PUT', f'/resource_providers/{UUIDS["win-1"]}/traits', 500)
    result = run('sync', '--yes', '-f', 'json')
    assert result.code == 1
    path = f'/resource_providers/{UUIDS["win-1"]}/traits'
    failure = (
        f'resource provider win-1: Placement at {live.url} answered PUT '
        f'{path} with 500: Because.'
    )
    assert result.err == f'{failure}\n'
    document = json.loads(result.out)
    assert document['failures'] == [failure]
    assert live.traits('win-2') == {LICENSED, MARK}


def test_a_provider_deleted_during_the_run_is_not_an_error(run, live):
    live.refuse('PUT', f'/resource_providers/{UUIDS["win-1"]}/aggregates', 404)
    result = run('sync', '--yes', '-f', 'value', '-c', 'Host')
    assert (result.code, result.out) == (0, 'win-2\nwin-2\n')
    assert result.err == 'resource provider win-1 was deleted meanwhile.\n'


def test_missing_rights_to_create_traits_are_reported(run, live):
    live.refuse('PUT', '/traits/', 403)
    result = run('sync', '--yes')
    assert result.code == 1
    assert 'denied PUT /traits/' in result.err
    assert len(result.err.splitlines()) == 1


def test_a_nova_that_cannot_be_read_is_an_error(run, live):
    live.http.get(f'{NOVA}/os-aggregates', status_code=500, text='')
    assert run('sync').code == 1


# Over files.

FILE = """
aggregates:
- name: win-hosts
  metadata: {trait:CUSTOM_LICENSED_WINDOWS: required}
  hosts: [win-1]
providers:
- name: win-1
"""


def test_a_plan_for_a_cloud_file_is_shown(run, write_cloud):
    result = run(
        'sync', '--snapshot', str(write_cloud(FILE)), '-f', 'value', '-c',
        'Change',
    )  # fmt: skip
    assert (result.code, result.out) == (3, f'add trait {LICENSED}\n')


@cases(
    'arguments',
    {
        'changing a file': ['--snapshot', 'x', '--yes'],
        'watching one': ['--snapshot', 'x', '--watch', '9'],
        'no pause': ['--watch', '0'],
        'no number': ['--watch', 'often'],
        'success of what is shown': ['--output', 'x'],
        'or not done': ['--output', 'x', '--dry-run'],
        'forget': ['--output', 'x', '--yes', '--forget'],
    },
)
def test_invalid_arguments_are_refused(run, arguments):
    result = run('sync', *arguments)
    assert result.code == 2
    assert result.err.endswith(' sync --help.\n')


# For Prometheus.

SUCCESS = ('isolate_aggregates_sync_last_success_timestamp_seconds',)


def test_only_a_success_writes_its_time(run, live, tmp_path):
    path = tmp_path / 'sync.prom'
    failing = ('sync', '--yes', '--output', str(path))
    live.refuse('PUT', f'/resource_providers/{UUIDS["win-1"]}/traits', 500)
    assert run(*failing).code == 1
    assert not path.exists()

    path.write_text('kept')
    assert run(*failing).code == 1
    assert path.read_text() == 'kept'


def test_a_success_with_nothing_to_do_counts(run, live, tmp_path):
    path = tmp_path / 'sync.prom'
    times = []
    for _ in range(2):
        before = time.time()
        result = run('sync', '--yes', '--output', str(path))
        assert result.code == 0
        content = parsed(path.read_text('utf-8'))
        assert before <= content[SUCCESS] <= time.time()
        times.append(content[SUCCESS])
    assert times[0] < times[1]


def test_nothing_is_done_if_a_success_could_not_be_recorded(
    run, live, tmp_path
):
    path = tmp_path / 'missing' / 'sync.prom'
    result = run('sync', '--yes', '--output', str(path))
    assert result.code == 1
    assert result.err == (
        f'The metrics cannot be written to {path}: No such file or '
        'directory.\n'
    )
    assert not live.traits('win-1')


def test_each_successful_round_of_a_watch_is_recorded(run, live, tmp_path):
    path = tmp_path / 'sync.prom'
    times = []

    def note():
        times.append(parsed(path.read_text('utf-8'))[SUCCESS])

    def note_and_end():
        note()
        end()

    # In the first round, they are read again after mirroring.
    after_rounds(live, nothing, nothing, note, note_and_end)
    result = run('sync', '--watch', '1', '--output', str(path))
    assert (result.code, result.err) == (0, '')
    assert times[0] < times[1]


def test_without_prometheus_client_nothing_is_changed(run, live, monkeypatch):
    monkeypatch.setitem(sys.modules, 'prometheus_client', None)
    result = run('sync', '--yes', '--output', 'x')
    assert result.code == 1
    assert 'need prometheus-client' in result.err
    assert live.traits('win-1') == frozenset()


# With systemd.


def test_the_units_are_installed_and_start_an_existing_command():
    unit = 'etc/systemd/isolate-aggregates-sync'
    assert units.is_installed(f'{unit}.timer')
    assert units.is_installed(f'{unit}.service')
    name, arguments = units.command(f'{unit}.service')
    assert name == 'sync'
    assert arguments.yes


# Again and again.


def after_rounds(live, *rounds):
    """Do something whenever Nova's aggregates are read."""
    waiting = list(rounds)

    def aggregates(request, context):
        waiting.pop(0)()
        return live.nova.respond(request, context)

    live.http.get(f'{NOVA}/os-aggregates', json=aggregates)


def end():
    """Ask this process to end."""
    os.kill(os.getpid(), signal.SIGTERM)


def nothing():
    """Do nothing in a round."""


def test_a_watch_writes_changes_until_it_is_stopped(run, live):
    before = signal.getsignal(signal.SIGTERM)

    def untag():
        live.nova.aggregates = [dataclasses.replace(WIN_HOSTS, metadata={})]

    # In the first round, they are read again after mirroring.
    after_rounds(live, nothing, nothing, untag, end)
    result = run('sync', '--watch', '1')
    assert result.code == 0
    assert [line.partition(';')[0] for line in result.out.splitlines()] == [
        'win-1: add aggregate win-hosts',
        f'win-1: add trait {LICENSED}',
        'win-2: add aggregate win-hosts',
        f'win-2: add trait {LICENSED}',
        f'win-1: remove trait {LICENSED}',
        f'win-2: remove trait {LICENSED}',
    ]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_watch_continues_after_an_error(run, live):
    broken = [{'status_code': 500, 'text': 'Broken.'}] * 2
    answer = [{'json': live.nova.respond}] * 2
    live.http.get(f'{NOVA}/os-aggregates', [*broken, *answer])
    reads = iter(range(9))

    def nodes(request, context):
        if next(reads) >= 2:
            end()
        return {'hypervisors': []}

    live.http.get(f'{NOVA}/os-hypervisors/detail', json=nodes)
    result = run('sync', '--watch', '1')
    assert result.code == 0
    errors = [line for line in result.err.splitlines() if '500' in line]
    assert len(errors) == 2
    assert 'Traceback' not in result.err


def test_a_watch_reports_a_problem_once(run, live):
    live.nova.aggregates = [
        dataclasses.replace(WIN_HOSTS, hosts=frozenset({'gone'}))
    ]
    after_rounds(live, nothing, nothing, end)
    result = run('sync', '--watch', '1')
    assert result.err.count('host gone has no compute node') == 1


def test_a_watch_without_credentials_ends_at_once(run):
    result = run('sync', '--watch', '1')
    assert result.code == 1
    assert result.err.startswith('There are no credentials for a cloud')


def test_a_stopped_watch_leaves_the_rest_to_the_next_run(run, live):
    after_rounds(live, end)
    result = run('sync', '--watch', '3600')
    assert (result.code, result.out, result.err) == (0, '', '')
    assert live.traits('win-1') == frozenset()


def test_an_effect_that_cannot_be_computed_is_not_called_none(run, live):
    live.nova.aggregates = [
        dataclasses.replace(WIN_HOSTS, hosts=frozenset({'win-1'}))
    ]
    # There is no Glance.
    result = run('sync', '--dry-run')
    assert result.code == 3
    assert '\nThe effect is not known: Glance ' in result.out
