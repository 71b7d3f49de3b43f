# SPDX-License-Identifier: Apache-2.0
"""A ledger names the hosts that a real Nova's drivers had servers on."""

import datetime
import os
import random

from base import CONF, IMAGE, host_of
from day_two import CommandTest
from nova.db.main import api
from nova.tests.fixtures import PROJECT_ID
from oslo_utils import timeutils
import pytest
from test_lives import LifeTest

from isolate_aggregates.nova import manage
from isolate_aggregates_tools.ledger import reading
from isolate_aggregates_tools.ledger.writer import LedgerWriter

# How many clouds are made up, and from which number on.
CLOUDS = int(os.environ.get('LEDGER_CLOUDS', '1'))
SEED = int(os.environ.get('LEDGER_SEED', '1'))
STEPS = 12

LICENSE = 'CUSTOM_LICENSED_WINDOWS'
LOCK = f'trait:{LICENSE}'
SECOND = datetime.timedelta(seconds=1)
HOUR = 3600
BEGIN = datetime.datetime(2026, 3, 1)


class Truth:
    """When the fake computes had which server, by what they were told."""

    def __init__(self):
        self.open = {}
        self.stays = []

    def arrived(self, server, host):
        if self.open.get(server, (None,))[0] == host:
            return
        self.left(server)
        last = self.stays[-1] if self.stays else None
        if last and last[:2] + last[3:] == (server, host, timeutils.utcnow()):
            # A rebuild destroys and spawns it.
            self.open[server] = self.stays.pop()[1:3]
            return
        self.open[server] = host, timeutils.utcnow()

    def left(self, server, host=None):
        if server not in self.open or host not in (
            None,
            self.open[server][0],
        ):
            return
        place, start = self.open.pop(server)
        self.stays.append((server, place, start, timeutils.utcnow()))

    def after(self, since):
        """Return the stays; the end of those that last is None."""
        stays = sorted(
            [
                (server, host, text(start), text(end))
                for server, host, start, end in self.stays
            ]
            + [
                (server, host, text(start), None)
                for server, (host, start) in self.open.items()
            ],
            key=str,
        )
        return sorted(
            (
                (server, host, max(start, since), end)
                for server, host, start, end in stays
                if end is None or end > since
            ),
            key=str,
        )


def text(time):
    return time.replace(microsecond=0).isoformat() + 'Z'


class LedgerTest(CommandTest):
    """Random lives of servers, and the ledger of them."""

    # The last one joins and leaves the locked aggregate.
    HOSTS = ('host1', 'host2', 'host3', 'host4', 'host5')

    def setUp(self):
        super().setUp()
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        # The clock of the test runs by hours.
        self.stub_out(
            'nova.servicegroup.drivers.db.DbDriver.is_up',
            lambda _, service: not service.get('forced_down'),
        )
        # Pages of two.
        self.flags(max_limit=2, group='api')
        self.truth = Truth()
        self.flavor_ids = {}
        self.keyed = []
        self.is_member = False
        for host in self.HOSTS:
            self.watch(host)
        self.clock = BEGIN
        timeutils.set_time_override(self.clock)
        self.addCleanup(timeutils.clear_time_override)
        self.stub_out(
            'isolate_aggregates_tools.ledger.times.now', self.seconds_now
        )

        self.file = self.config.with_name('ledger.jsonl')
        self.writer = LedgerWriter(
            self.file, interval=10**5, clock=self.seconds_now
        )
        self.addCleanup(self.writer.close)

    def seconds_now(self):
        return int(self.clock.replace(tzinfo=datetime.UTC).timestamp())

    def watch(self, host):
        """Write down what the driver of a host is told."""
        driver = self.computes[host].driver
        truth = self.truth

        def noting(name, number, note):
            method = getattr(driver, name)

            def called(*args, **kwargs):
                result = method(*args, **kwargs)
                instance = kwargs.get('instance') or args[number]
                note(instance.uuid, host)
                return result

            setattr(driver, name, called)

        for name, number in (
            ('spawn', 1),
            ('finish_migration', 2),
            ('finish_revert_migration', 1),
            ('post_live_migration_at_destination', 1),
        ):
            noting(name, number, truth.arrived)
        noting('destroy', 1, truth.left)

    def advance(self, chance):
        self.clock += datetime.timedelta(seconds=chance.randint(1, 10**5))
        timeutils.set_time_override(self.clock)

    def ledger(self, *arguments):
        result = self.run_command('ledger', *arguments, '-f', 'json')
        assert result.code == 0, result
        return result.document

    def stays(self, document):
        return sorted(
            (
                (each['server'], each['host'], each['from'], each['to'])
                for each in document['stays']
            ),
            key=str,
        )

    def restart(self, host):
        """Start the compute service of a host again."""
        guests = self.computes[host].driver.instances
        self._start_compute(host)
        # Those of a real host outlive its compute service.
        self.computes[host].driver.instances.update(
            (uuid, guest)
            for uuid, guest in guests.items()
            if self.truth.open[uuid][0] == host
        )
        self.watch(host)
        [service] = self.admin_api.get_services('nova-compute', host)
        self.admin_api.put_service_force_down(service['id'], False)

    # What can happen to a server. Each returns the server; None if it is gone.

    moved = LifeTest.moved

    def migrate(self, server, chance):
        server = self._migrate_server(server)
        self.advance(chance)
        return self._confirm_resize(server)

    def revert(self, server, chance):
        server = self._resize_server(server, chance.choice(self.alike(server)))
        self.advance(chance)
        return self._revert_resize(server)

    def resize(self, server, chance):
        flavor = chance.choice(self.alike(server))
        server = self._resize_server(server, flavor)
        self.flavor_ids[server['id']] = flavor
        self.advance(chance)
        return self._confirm_resize(server)

    def live_migrate(self, server, chance):
        return LifeTest.live_migrate(self, server)

    def shelve(self, server, chance):
        server = self._shelve_server(server)
        self.look()
        self.advance(chance)
        return self._unshelve_server(server)

    def rebuild(self, server, chance):
        return LifeTest.rebuild(self, server, IMAGE)

    def evacuate(self, server, chance):
        host = host_of(server)
        self.computes[host].stop()
        [service] = self.admin_api.get_services('nova-compute', host)
        self.admin_api.put_service_force_down(service['id'], True)
        self.advance(chance)
        self.admin_api.post_server_action(server['id'], {'evacuate': {}})
        server = self.moved(server, 'SHUTOFF')
        self.advance(chance)
        self.restart(host)
        return self._start_server(server)

    def delete(self, server, chance):
        self._delete_server(server)

    LIVES = (
        migrate,
        revert,
        resize,
        live_migrate,
        shelve,
        rebuild,
        evacuate,
        delete,
    )

    def alike(self, server):
        """Return other flavors with the same key."""
        mine = self.flavor_ids[server['id']]
        [group] = [each for each in self.flavors if mine in each]
        return [each for each in group if each != mine]

    def look(self):
        """Record the cloud, as exporter does."""
        self.writer.look(reading.look(self.live_cloud(), CONF))
        self.looks.append((self.seconds_now(), self.is_member))

    def toggle(self):
        """Put the last host into the aggregate, or take it out."""
        if self.is_member:
            self.admin_api.api_post(
                f'/os-aggregates/{self.number}/action',
                {'remove_host': {'host': 'host5'}},
            )
        else:
            self.admin_api.add_host_to_aggregate(self.number, 'host5')
        self.is_member = not self.is_member

    def days_of(self, looks):
        """Return the days of looks at which something was so, or may be.

        :param looks: The time of each look, and whether it was so.
        """
        seconds = set()
        was_so = False
        before = looks[0][0]
        for now, is_so in looks:
            if is_so or was_so:
                seconds.update((*range(before, now, HOUR), now))
            was_so, before = is_so, now
        return {
            datetime.datetime.fromtimestamp(each, datetime.UTC)
            .date()
            .isoformat()
            for each in seconds
        }

    def assert_may_have_key(self, document, stays):
        """A ledger of the lock has all stays, and else only unknown ones."""
        unknown = {
            (each['server'], each['host'], each['from'], each['to'])
            for each in document['stays']
            if each['has_key'] is None
        }
        assert set(self.stays(document)) - unknown <= set(stays)
        assert set(stays) <= set(self.stays(document))
        for server, host, start, _ in unknown:
            assert any(
                server in sentence and f'on host {host}' in sentence
                for sentence in document['not_known']
            ), start

    @pytest.mark.slow
    def test_the_ledger_is_what_the_drivers_did(self):
        for seed in range(SEED, SEED + CLOUDS):
            self.live(random.Random(seed), f'windows-{seed}')

    @pytest.mark.slow
    def test_a_key_by_the_image_is_known_or_said_to_be_unknown(self):
        """Nova tells no traits of images, but a record of a server does."""
        self.aggregate('windows', ('host1',), {LOCK: 'required'})
        self.give_trait('host1', LICENSE)
        since = text(self.clock)
        flavor = self.flavor()
        keyed, recorded, gone = (
            self.image({LOCK: 'required'}) for _ in range(3)
        )
        images = {keyed: (LOCK,), gone: None, IMAGE: (), recorded: (LOCK,)}
        servers = {}
        for image in images:
            if image == recorded:
                # Those before have none.
                assert manage.forget().done
            servers[image] = self.boot(flavor, image)['id']
        del self.glance.images[recorded]
        del self.glance.images[gone]
        self.advance(random.Random(SEED))
        seen = reading.look(self.live_cloud(), CONF).servers
        for image, keys in images.items():
            assert seen[servers[image]].keys == keys
        document = self.ledger('--lock', LOCK, '--since', since)
        assert {
            each['server']: each['has_key'] for each in document['stays']
        } == {
            servers[keyed]: True,
            servers[recorded]: True,
            servers[gone]: None,
        }
        [sentence] = [
            each for each in document['not_known'] if 'had the key' in each
        ]
        assert sentence.startswith('whether 1 server had the key')

    def test_the_days_on_which_an_aggregate_was_locked(self):
        """The tag is set and removed."""
        chance = random.Random(SEED)
        number = self.aggregate('windows', ('host1',))
        self.aggregate('always', ('host2',), {LOCK: 'required'})
        self.give_trait('host2', LICENSE)
        since = text(self.clock)
        looks, is_locked = [], False
        for _ in range(STEPS):
            self.advance(chance)
            if chance.random() < 0.5:
                is_locked = not is_locked
                value = 'required' if is_locked else None
                self.tag(number, {LOCK: value})
            self.writer.look(reading.look(self.live_cloud(), CONF))
            looks.append((self.seconds_now(), is_locked))
        assert {is_locked for _, is_locked in looks} == {True, False}
        options = ('--lock', LOCK, '--since', since)
        document = self.ledger(*options, '--file', str(self.file))
        could = {
            host: {
                each['day']
                for each in document['days']
                if each['host'] == host and each['could']
            }
            for host in ('host1', 'host2')
        }
        assert could['host1'] == self.days_of(looks)
        assert could['host1'] <= could['host2']
        assert document['stays'] == []

    @pytest.mark.slow
    def test_the_file_has_what_nova_has_archived(self):
        """Between the looks, so that no host is missing."""
        since = text(self.clock)
        self.live(random.Random(SEED + CLOUDS), 'windows')
        api.archive_deleted_rows(max_rows=10**6)
        options = ('--project', PROJECT_ID, '--since', since)
        stays = self.truth.after(since)
        gone = {stay[0] for stay in stays} - {
            stay[0] for stay in self.stays(self.ledger(*options))
        }
        assert gone
        document = self.ledger(*options, '--file', str(self.file))
        assert {stay[:2] for stay in self.stays(document)} == {
            stay[:2] for stay in stays
        }
        for server, host, start, end in stays:
            assert any(
                (each['server'], each['host']) == (server, host)
                and each['from'] <= start <= (each['from_by'] or each['from'])
                and (each['to'] is None) == (end is None)
                and (
                    end is None
                    or (each['to_from'] or each['to']) <= end <= each['to']
                )
                for each in document['stays']
            ), (server, host, start, end)
            assert server in gone or any(
                (server, host, start, end) == stay
                for stay in self.stays(document)
            )

    def live(self, chance, name):
        """Let servers live and compare; the truth goes on."""
        for host in ('host1', 'host2'):
            self.give_trait(host, LICENSE)
        if self.is_member:
            self.toggle()
        self.looks = []
        self.number = self.aggregate(
            name, ('host1', 'host2'), {LOCK: 'required'}
        )
        since = text(self.clock)
        keyed = [self.flavor({LOCK: 'required'}) for _ in range(2)]
        self.keyed += keyed
        self.flavors = [keyed, [self.flavor() for _ in range(2)]]
        servers = []
        self.look()
        for step in range(STEPS):
            self.advance(chance)
            if chance.random() < 0.4:
                self.toggle()
            if step < 3 or chance.random() < 0.2:
                flavor = chance.choice(self.flavors[step % 2])
                server = self.boot(flavor)
                self.flavor_ids[server['id']] = flavor
            else:
                server = servers.pop(chance.randrange(len(servers)))
                life = chance.choice(self.LIVES)
                server = life(self, server, chance)
            if server:
                servers.append(server)
            self.look()
        self.advance(chance)
        everything = self.truth.after(since)
        document = self.ledger('--project', PROJECT_ID, '--since', since)
        assert self.stays(document) == everything
        # Without a ledger file.
        assert document['not_known'][:1] == [
            f'between {since} and {text(self.clock - SECOND)}, there is no '
            'record of servers that Nova has archived or whose actions were '
            'purged'
        ]
        own = {
            server
            for server, flavor in self.flavor_ids.items()
            if flavor in self.keyed
        }
        document = self.ledger('--lock', LOCK, '--since', since)
        self.assert_may_have_key(
            document, [stay for stay in everything if stay[0] in own]
        )
        if self.is_member:
            self.toggle()
            self.look()
        options = ('--aggregate', name, '--since', since)
        assert self.stays(self.ledger(*options)) == [
            stay for stay in everything if stay[1] in ('host1', 'host2')
        ]
        document = self.ledger(*options, '--file', str(self.file))
        hosts = {'host1', 'host2'}
        if any(is_member for _, is_member in self.looks):
            hosts.add('host5')
        assert self.stays(document) == [
            stay for stay in everything if stay[1] in hosts
        ]
        assert {
            each['day']
            for each in document['days']
            if each['host'] == 'host5' and each['could']
        } == self.days_of(self.looks)
