# SPDX-License-Identifier: Apache-2.0
"""What is said of a change is what it does, on a real Nova and Placement."""

import os
import random
import time

from base import CONF, IMAGE, SECONDS, host_of
from day_two import CommandTest
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.documents import content
from isolate_aggregates_tools.effect import effect, shown

# How many clouds are made up, and from which number on.
CLOUDS = int(os.environ.get('EFFECT_CLOUDS', '1'))
SEED = int(os.environ.get('EFFECT_SEED', '1'))
CHANGES = 4

TRAITS = ('CUSTOM_RED', 'CUSTOM_BLUE')


class EffectTest(CommandTest):
    """Random changes of small clouds, foretold and made."""

    HOSTS = ('host1', 'host2', 'host3')

    def setUp(self):
        super().setUp()
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        # Flavors of nobody would have to be judged, too.
        for flavor in self.admin_api.get_flavors():
            self.admin_api.api_delete(f'/flavors/{flavor["id"]}')

    def aggregates(self):
        """Return all host aggregates, as Nova describes them."""
        return self.admin_api.api_get('/os-aggregates').body['aggregates']

    def saved(self, name):
        """Return a snapshot of the cloud as it is."""
        path = self.config.with_name(f'{name}.yaml')
        result = self.run_command('snapshot', 'save', '--output', str(path))
        assert result.code == 0, result.err
        return cloud_file.load(path)

    def foretold(self, *arguments):
        """Return the effect that a command shows; nothing is changed."""
        result = self.run_command(*arguments, '-f', 'json')
        assert result.code in (0, 1, 3), result
        document = result.document
        if arguments[0] != 'effect':
            return document['effect']
        for key in ('differences', 'steps', 'gaps', 'refused', 'unknown'):
            del document[key]
        return document

    def make(self, *arguments):
        """Make a change with a command of ours, or of Nova's API."""
        if arguments[0] != 'effect':
            assert self.run_command(*arguments).code in (0, 1)
            return
        *_, option, name, what = arguments
        numbers = {each['name']: each['id'] for each in self.aggregates()}
        key, _, value = what.partition('=')
        match option:
            case '--add-host':
                self.admin_api.add_host_to_aggregate(numbers[name], what)
            case '--remove-host':
                self.admin_api.api_post(
                    f'/os-aggregates/{numbers[name]}/action',
                    {'remove_host': {'host': what}},
                )
            case '--set':
                self.tag(numbers[name], {key: value})
            case '--unset':
                self.tag(numbers[name], {what: None})
            case '--flavor-set':
                self.admin_api.post_extra_spec(
                    self.flavors[name], {'extra_specs': {key: value}}
                )

    def change(self, chance):
        """Return the arguments of a random change that can be made."""
        [aggregate] = chance.sample(self.aggregates(), 1)
        name, trait = aggregate['name'], chance.choice(TRAITS)
        key = f'trait:{trait}'
        flavor = chance.choice(sorted(self.flavors))
        outside = sorted({*self.HOSTS} - {*aggregate['hosts']})
        changes = [
            ('lock', 'create', name, '--trait', trait),
            ('effect', 'show', '--set', name, f'{key}=required'),
            ('sync',),
        ]
        if key in aggregate['metadata']:
            changes += [
                ('lock', 'delete', name, '--trait', trait),
                ('effect', 'show', '--unset', name, key),
            ]
        if outside:
            changes.append(('effect', 'show', '--add-host', name, outside[0]))
        if aggregate['hosts']:
            host = sorted(aggregate['hosts'])[0]
            changes.append(('effect', 'show', '--remove-host', name, host))
        if trait in self.live_cloud().traits():
            changes += [
                ('key', 'add', '--flavor', flavor, '--trait', trait),
                ('key', 'remove', '--flavor', flavor, '--trait', trait),
                ('effect', 'show', '--flavor-set', flavor, f'{key}=required'),
            ]
        return chance.choice(changes)

    def named_flavor(self, name, memory, **extra_specs):
        """Make a flavor with a name."""
        self.flavors[name] = self._create_flavor(
            name=name,
            vcpu=1,
            memory_mb=memory,
            disk=1,
            ephemeral=0,
            extra_spec=extra_specs,
        )

    def settled(self, server):
        """Return a server once Nova has given it a host, or none."""
        until = time.monotonic() + SECONDS
        while server.get('status', 'BUILD') == 'BUILD':
            assert time.monotonic() < until
            time.sleep(0.05)
            server = self.admin_api.get_server(server['id'])
        return server

    def would_get(self, server, host):
        """Return whether Nova gives an equal new server a host."""
        name = server['flavor']['original_name']
        request = self._build_server(
            image_uuid=IMAGE, flavor_id=self.flavors[name], networks='none'
        )
        made = self.admin_api.post_server(
            {'server': {**request, 'host': host}}
        )
        made = self.settled(made)
        got = host_of(made)
        self._delete_server(made)
        assert got in (None, host)
        return got == host

    def fitting(self, flavor):
        """Boot servers of a flavor until no more fit; return their number."""
        servers = []
        while True:
            made = self._build_server(
                image_uuid=IMAGE, flavor_id=flavor, networks='none'
            )
            server = self.admin_api.post_server({'server': made})
            server = self.settled(server)
            servers.append(server)
            if server['status'] == 'ERROR':
                break
        for server in servers:
            self._delete_server(server)
        return len(servers) - 1

    @pytest.mark.slow
    def test_random_changes_do_what_was_said(self):
        for seed in range(SEED, SEED + CLOUDS):
            chance = random.Random(seed)
            self.flavors = {}
            self.named_flavor('plain', 64)
            self.named_flavor('large', 2048)
            for name in ('left', 'right'):
                hosts = [h for h in self.HOSTS if chance.random() < 0.5]
                self.aggregate(f'{name}-{seed}', hosts)
            servers = [
                self.boot(self.flavors['plain'])
                for _ in range(chance.randrange(3))
            ]
            for number in range(CHANGES):
                arguments = self.change(chance)
                with self.subTest(seed=seed, number=number, made=arguments):
                    self.foretell_and_make(arguments)
            self.clear(servers)

    def clear(self, servers):
        """Remove everything that a round has made."""
        for server in servers:
            self._delete_server(server)
        for aggregate in self.aggregates():
            for host in aggregate['hosts']:
                self.admin_api.api_post(
                    f'/os-aggregates/{aggregate["id"]}/action',
                    {'remove_host': {'host': host}},
                )
            self.admin_api.delete_aggregate(aggregate['id'])
        for flavor in self.flavors.values():
            self.admin_api.api_delete(f'/flavors/{flavor}')
        self.run_command('sync', '--yes')

    def foretell_and_make(self, arguments):
        """Compare what is said of a change with what it does."""
        before = self.saved('before')
        dry = () if arguments[0] == 'effect' else ('--dry-run',)
        told = self.foretold(*arguments, *dry)
        agreed = ('--yes',) if arguments[0] == 'sync' else ()
        self.make(*arguments, *agreed)
        after = self.saved('after')
        if told is None:
            # There was nothing to do.
            assert after.aggregates == before.aggregates
            assert after.providers == before.providers
            return
        isolating = ia_conf.SCHEDULER, 'enable_isolated_aggregate_filtering'
        assert CONF[isolating[0]][isolating[1]]
        assert told == content(shown.document(effect(before, after, CONF)))
        self.check_servers(told)
        slots = {
            each['flavor']: each['slots']['after']
            for each in told['flavors']
            if each['image'] is None
        }
        if 'large' in slots:
            assert self.fitting(self.flavors['large']) == slots['large']

    def check_servers(self, told):
        """Compare servers out of place with what Nova would do."""
        displaced = {s['id'] for s in told['servers']['out_of_place']}
        placed = {s['id'] for s in told['servers']['in_place']}
        for server in self.admin_api.get_servers():
            one = self.admin_api.get_server(server['id'])
            if one['id'] in displaced | placed:
                assert self.would_get(one, host_of(one)) is (
                    one['id'] in placed
                )
