# SPDX-License-Identifier: Apache-2.0
"""A command reads only what has changed since earlier ones, from a real file.

Whatever is wrong with the file, everything is read and the answer is right.
"""

import contextlib
import json
import os
import random
import stat
import threading
import time

from cases import cases
from oslo_config import cfg
import pytest
from written_cloud import HOSTS, KNOWN, Cloud, an_id

from isolate_aggregates import exception
from isolate_aggregates import options as tools_options
from isolate_aggregates_tools.cloud.live import memory_file
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.cloud.live.memory_file import MemoryFile
from isolate_aggregates_tools.cloud.live.provider_memory import ProviderMemory
from isolate_aggregates_tools.placement.provider import Inventory


class Commands:
    """Commands on a cloud that other clients write to.

    :param remember: The option ``remember_providers``.
    """

    def __init__(self, cloud, remember=True):
        self.cloud = cloud
        self._conf = cfg.ConfigOpts()
        tools_options.register_opts(self._conf)
        self._conf([], default_config_files=[], default_config_dirs=[])
        self._conf.set_override(
            'remember_providers', remember, 'isolate_aggregates'
        )

    def run(self, remembers=True):
        """Read the cloud; return its providers, and the calls it took."""
        self.cloud.wire.calls.clear()
        with contextlib.closing(
            LiveCloud(self._conf, self.cloud.connection, remembers=remembers)
        ) as found:
            providers = found.survey().snapshot.providers
        calls = [url for _, url in self.cloud.wire.calls]
        return providers, sum(u.startswith(self.cloud.endpoint) for u in calls)

    def truth(self):
        """Return the providers as they are."""
        return self.run(remembers=False)[0]


@pytest.fixture
def commands(embedded, without_configuration):
    cloud = Cloud(embedded, random.Random(1))
    for _ in range(HOSTS):
        cloud.host()
    for number, aggregate in enumerate(KNOWN, 1):
        cloud.nova.aggregates[number] = {
            'id': number,
            'uuid': aggregate,
            'name': f'aggregate-{number}',
            'hosts': [],
            'metadata': {},
            'availability_zone': None,
        }
    return Commands(cloud)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / 'isolate-aggregates'


def the_file(folder):
    [path] = folder.iterdir()
    return path


def test_the_second_command_reads_what_has_changed(commands):
    _, first = commands.run()
    _, second = commands.run()
    assert second <= first - HOSTS
    cloud = commands.cloud
    cloud.inventories(cloud.listed()[0]['uuid'])
    cloud.traits(cloud.listed()[1]['uuid'])
    found, third = commands.run()
    assert third <= second + 2 * 2 + 2
    assert found == commands.truth()


def test_a_reading_asks_once_which_names_exist(commands):
    commands.run()
    urls = [url for _, url in commands.cloud.wire.calls]
    for names in ('traits', 'resource_classes'):
        assert urls.count(f'{commands.cloud.endpoint}/{names}') == 1


def test_a_membership_in_another_spelling_is_read(commands):
    cloud = commands.cloud
    for entry in cloud.listed():
        cloud.put(entry['uuid'], 'aggregates', [])
    first, second = sorted(cloud.listed(), key=lambda e: e['name'])[:2]
    cloud.nova.aggregates[1]['hosts'] = [first['name'], second['name']]
    cloud.put(first['uuid'], 'aggregates', [KNOWN[0]])
    _, before = commands.run()
    cloud.put(second['uuid'], 'aggregates', [KNOWN[0].upper(), KNOWN[1]])
    providers, calls = commands.run()
    found = {provider.uuid: provider.aggregates for provider in providers}
    assert found[first['uuid']] == {KNOWN[0]}
    assert found[second['uuid']] == {KNOWN[0].upper(), KNOWN[1]}
    # Only nodes that lack an aggregate are read for it.
    path = f'/resource_providers/{second["uuid"]}/aggregates'
    asked = [u for _, u in cloud.wire.calls if u.endswith('/aggregates')]
    assert [u for u in asked if cloud.endpoint in u] == [
        f'{cloud.endpoint}{path}'
    ]
    assert calls <= before + 3


def test_every_change_that_placement_tells_is_in_the_next_answer(commands):
    cloud = commands.cloud
    for _ in range(8):
        cloud.write()
        found = {p.uuid: p for p in commands.run()[0]}
        truth = {p.uuid: p for p in commands.truth()}
        assert found.keys() == truth.keys()
        assert {u for u in truth if found[u] != truth[u]} <= cloud.late


def test_only_its_owner_can_read_the_file(commands, folder):
    commands.run()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(the_file(folder).stat().st_mode) == 0o600


def test_the_file_has_no_credentials_and_no_usage(commands, folder):
    cloud = commands.cloud
    provider = cloud.listed()[0]['uuid']
    cloud.inventories(provider)
    cloud.direct.send(
        'PUT',
        f'/allocations/{an_id("a server")}',
        {
            'allocations': {provider: {'resources': {'VCPU': 1}}},
            'project_id': 'a-project',
            'user_id': 'a-user',
            'consumer_generation': None,
        },
    )
    commands.run()
    text = the_file(folder).read_text()
    for secret in ('admin', cloud.endpoint, 'a-project', an_id('a server')):
        assert secret not in text
    head, body = map(json.loads, text.splitlines())
    assert head.keys() == {'version', 'sha256'}
    assert body.keys() == {'round', 'traits', 'amounts', 'providers'}
    # The generation, the time, and numbers of traits and amounts.
    assert {len(one) for one in body['providers'].values()} == {4}


def test_usage_is_read_again(commands):
    cloud = commands.cloud
    commands.run()
    for _ in range(9):
        with contextlib.suppress(exception.ServiceError):
            cloud.allocate()
        with contextlib.suppress(exception.ServiceError):
            cloud.free()
    assert commands.run()[0] == commands.truth()


def shorten(path, folder):
    path.write_text(path.read_text()[:-20])


def flip(path, folder):
    path.write_text(path.read_text().replace('"VCPU": [', '"VCPU": [1', 1))


def renumber(path, folder):
    path.write_text(path.read_text().replace('"version": 1', '"version": 0'))


def empty(path, folder):
    path.write_text('')


def fill_with_bytes(path, folder):
    path.write_bytes(b'\xff\0')


def share(path, folder):
    path.chmod(0o640)


def share_folder(path, folder):
    folder.chmod(0o770)


def link(path, folder):
    other = folder.parent / 'other'
    path.rename(other)
    path.symlink_to(other)


def link_folder(path, folder):
    other = folder.parent / 'other'
    folder.rename(other)
    folder.symlink_to(other)


def make_directory(path, folder):
    path.unlink()
    path.mkdir()


@cases(
    ('spoil', 'said'),
    {
        'shortened': (shorten, 'or is damaged'),
        'a bit flipped': (flip, 'or is damaged'),
        'of another version': (renumber, 'not written by this release'),
        'empty': (empty, 'or is damaged'),
        'no text': (fill_with_bytes, 'or is damaged'),
        'readable by others': (share, 'it is accessible to other users'),
        'in a folder of others': (
            share_folder,
            'its folder is accessible to other users',
        ),
        'a link': (link, 'Too many levels of symbolic links'),
        'in a linked folder': (link_folder, 'its folder is of another kind'),
        'a directory': (make_directory, 'Is a directory'),
    },
)
def test_with_a_file_that_is_not_right_everything_is_read(
    commands, folder, caplog, spoil, said
):
    _, first = commands.run()
    path = the_file(folder)
    spoil(path, folder)
    # If it were used, it would show.
    found, second = commands.run()
    assert found == commands.truth()
    assert second == first
    [told] = [r.getMessage() for r in caplog.records if 'kept in' in r.message]
    assert said in told
    assert str(path) in told


def test_a_file_is_mended_by_the_next_command(commands, folder, caplog):
    commands.run()
    shorten(the_file(folder), folder)
    commands.run()
    caplog.clear()
    commands.run()
    assert not caplog.records
    assert len([*folder.iterdir()]) == 1


def test_a_file_of_another_user_is_not_used(
    commands, folder, caplog, monkeypatch
):
    """As with sudo, or on a home that several machines share."""
    _, first = commands.run()
    before = the_file(folder).read_text()
    with monkeypatch.context() as patch:
        patch.setattr(os, 'geteuid', lambda: os.getuid() + 1)
        assert commands.run()[1] == first
    assert 'its folder belongs to another user' in caplog.text
    assert the_file(folder).read_text() == before


@pytest.mark.parametrize('ago', [-60, memory_file.MOST + 1])
def test_what_was_read_more_than_a_day_ago_is_read_again(
    commands, folder, ago
):
    """The same if the clock has been put back."""
    _, first = commands.run()
    file = MemoryFile(the_file(folder))
    memory = file.load()
    for known in memory.known.values():
        known.since = time.time() - ago
    file.save(memory)
    assert commands.run()[1] == first


def test_what_nothing_tells_is_seen_after_a_day(commands, folder, monkeypatch):
    cloud = commands.cloud
    host = cloud.host()
    cloud.largest(host, 1)
    commands.run()
    cloud.create_alike(host, 2)
    assert commands.run()[0] != commands.truth()
    monkeypatch.setattr(memory_file, 'MOST', 0)
    assert commands.run()[0] == commands.truth()


def test_an_interrupted_command_leaves_the_file_as_it_was(
    commands, folder, monkeypatch
):
    commands.run()
    before = the_file(folder).read_text()

    def interrupted(*paths):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, 'replace', interrupted)
    with pytest.raises(KeyboardInterrupt):
        commands.run()
    assert the_file(folder).read_text() == before


def test_a_disk_without_room_is_told_once_and_harms_nothing(
    commands, folder, monkeypatch, caplog
):
    def full(*paths):
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, 'replace', full)
    assert commands.run()[0] == commands.truth()
    assert caplog.text.count('No space left on device') == 1
    assert not [*folder.iterdir()]


def test_a_user_without_a_home_is_served(commands, monkeypatch, caplog):
    monkeypatch.setenv('XDG_CACHE_HOME', '/dev/null/none')
    assert commands.run()[0] == commands.truth()
    assert 'Not a directory' in caplog.text


def test_the_file_can_be_switched_off(commands, folder):
    off = Commands(commands.cloud, remember=False)
    assert off.run()[1] == off.run()[1]
    assert not folder.exists()


def test_each_cloud_and_user_has_a_file(commands):
    connection = commands.cloud.connection()
    session = connection.session

    def path(endpoint='http://a.test', user=None):
        session.get_user_id = lambda: user
        return MemoryFile.of(connection, endpoint).path

    paths = [path(), path('http://b.test'), path(user='u'), path(user='v')]
    assert len({*paths}) == 4
    assert path() == paths[0]


def test_commands_at_the_same_time_leave_a_whole_file(commands, folder):
    commands.run()
    path = the_file(folder)
    memory = MemoryFile(path).load()
    assert memory.known
    found = []

    def keep_on():
        for _ in range(50):
            one = MemoryFile(path)
            one.save(memory)
            found.append(one.load().known == memory.known)

    threads = [threading.Thread(target=keep_on) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 200
    assert the_file(folder) == path


def test_a_provider_takes_at_most_two_kilobytes(folder):
    path = folder / 'providers-0.json'
    cloud = ProviderMemory()
    entries = [
        {'uuid': an_id(number), 'generation': number}
        for number in range(1_000)
    ]
    for number, entry in enumerate(entries):
        known = cloud.of(entry)
        known.traits = frozenset(f'CUSTOM_TRAIT_{n}' for n in range(150))
        known.inventories = {'VCPU': Inventory(number)}
    MemoryFile(path).save(cloud)
    assert path.stat().st_size / len(entries) < 2_000
