# SPDX-License-Identifier: Apache-2.0
"""A server that was rebuilt moves like one that never was.

What a server was accepted with is read from what Nova recorded then. What the
operator does to aggregates later proves nothing about it.
"""

import os
import random
import time

from base import ISOLATE, RESERVATIONS, host_of
from nova import context as nova_context
from nova import objects
from nova.db.main import models
from nova.scheduler import request_filter
import pytest
from server_requests import hosts_for
from test_lives import LICENSE, MINE, OWNER, STRANGER, UNKNOWN, LifeTest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.nova import runner

ORACLE = 'license:oracle'
# How many times a random server of a random cloud is looked at, and which.
CASES = int(os.environ.get('RANDOM_CASES', '150'))
SEED = os.environ.get('RANDOM_SEED') or str(random.randrange(10**6))


class MovedTest(LifeTest):
    """Asks the real scheduler where a server would be moved to."""

    def destinations(self, server):
        """Return the hosts that each kind of move could choose."""
        found = {
            move: hosts_for(
                self.scheduler_service.manager, self.spec(server, **changes)
            )
            for move, changes in {
                'migrate': {},
                'resize': {'flavor': self.resized},
                'unshelve': {'num_instances': 1},
                'evacuate': {'ignore_hosts': ['host1']},
            }.items()
        }
        [hosts] = {frozenset(hosts) for hosts in found.values()}
        return hosts

    @property
    def resized(self):
        context = nova_context.get_admin_context()
        return objects.Flavor.get_by_flavor_id(context, self.flavor())

    def spec(self, server, **changes):
        """Return the request for a move, as the conductor makes it."""
        context = nova_context.get_admin_context()
        spec = objects.RequestSpec.get_by_instance_uuid(context, server['id'])
        spec.reset_forced_destinations()
        spec.requested_destination = objects.Destination(
            cell=self.cell_mappings['cell1']
        )
        spec.requested_resources = []
        spec.request_level_params = objects.RequestLevelParams()
        for name, value in changes.items():
            setattr(spec, name, value)
        return spec


class RebuiltTest(MovedTest):
    """Of two servers on host1 one was rebuilt; both may move to one host."""

    HOSTS = ('host1', 'host2', 'host3')
    OPTIONS = (
        ISOLATE,
        ('scheduler', 'max_attempts', len(HOSTS) + 1),
        *(
            ('scheduler', option, ['license:', 'reservation:'])
            for option in (
                'placement_req_required_member_prefix',
                'placement_req_default_forbidden_member_prefix',
            )
        ),
        (ia_conf.GROUP, 'reservation_key_sources', ['image']),
    )

    def lock(self):
        """Everything is open when a test begins."""

    def rebuild(self, server, image):
        """Rebuild a server; what follows has a later time."""
        server = super().rebuild(server, image)
        if 'NOVA_DATABASE' in os.environ:
            # It rounds to seconds; equal times count as before the rebuild.
            time.sleep(1.5)
        return server

    def boot_two(self, *properties):
        """Boot two servers of one image onto host1."""
        first, image = self.boot_from(*properties)
        second = self.boot(self.flavor(), image=image, project=OWNER)
        assert {*map(host_of, (first, second))} == {'host1'}
        return first, second, image

    def boot_licensed(self):
        """Boot two servers that host1 and host3 have a license for."""
        licensed = self.aggregate(
            'licensed',
            ['host1', 'host3'],
            {ORACLE: '1', 'blazar:owner': OWNER},
        )
        return *self.boot_two(ORACLE), licensed

    def database(self):
        context = nova_context.get_admin_context()
        nova_context.set_target_cell(context, self.cell_mappings['cell1'])
        return context.db_connection.writer.using(context)

    def assert_both_move_to(self, host, *servers):
        assert [*map(self.destinations, servers)] == [{host}] * 2

    def test_its_host_is_drained_from_its_license(self):
        server, rebuilt, image, licensed = self.boot_licensed()
        self.rebuild(rebuilt, image)
        self.admin_api.remove_host_from_aggregate(licensed, 'host1')
        self.assert_both_move_to('host3', server, rebuilt)

    @pytest.mark.slow
    def test_it_has_three_years_of_backups(self):
        server, old, _, licensed = self.boot_licensed()
        with self.database() as session:
            session.add_all(
                models.InstanceAction(
                    action='createBackup', instance_uuid=old['id']
                )
                for _ in range(1100)
            )
        self.admin_api.remove_host_from_aggregate(licensed, 'host1')
        self.assert_both_move_to('host3', server, old)

    @pytest.mark.slow
    def test_its_last_rebuild_failed_on_its_host(self):
        server, failed, image, licensed = self.boot_licensed()
        self.rebuild(failed, image)
        with self.database() as session:
            session.query(models.InstanceAction).filter_by(
                action='rebuild'
            ).update({'message': 'Error'})
        self.admin_api.remove_host_from_aggregate(licensed, 'host1')
        self.assert_both_move_to('host3', server, failed)

    def test_its_host_is_locked_by_a_trait_later(self):
        """The refused image does not pin it, and the host tells nothing."""
        server, refused, _ = self.boot_two()
        self.rebuild_refused(refused, UNKNOWN)
        for host in ('host1', 'host3'):
            self.give_trait(host, LICENSE.removeprefix('trait:'))
        self.aggregate('licensed', ['host1', 'host3'], {LICENSE: 'required'})
        self.assert_both_move_to('host2', server, refused)

    @pytest.mark.slow
    def test_its_host_joins_a_reservation_of_its_project_later(self):
        server, rebuilt, image = self.boot_two()
        self.rebuild(rebuilt, image)
        self.aggregate(
            'mine', ['host1', 'host3'], {MINE: '1', 'blazar:owner': OWNER}
        )
        self.assert_both_move_to('host2', server, rebuilt)

    @pytest.mark.slow
    def test_only_its_host_joins_a_reservation_later(self):
        server, rebuilt, image = self.boot_two()
        self.rebuild(rebuilt, image)
        self.aggregate('mine', ['host1'], {MINE: '1', 'blazar:owner': OWNER})
        for one in (server, rebuilt):
            assert self.destinations(one) == {'host2', 'host3'}

    @pytest.mark.slow
    def test_the_aggregate_of_its_host_is_reserved_later(self):
        """It was in the aggregate before, but the key was not."""
        lease = self.aggregate('lease', ['host1', 'host3'], {'rack': '7'})
        server, rebuilt, image = self.boot_two()
        self.rebuild(rebuilt, image)
        self.tag(lease, {MINE: '1', 'blazar:owner': OWNER})
        self.assert_both_move_to('host2', server, rebuilt)


A, B = 'CUSTOM_A', 'CUSTOM_B'
YOURS = 'reservation:77e1c0de'


class Model:
    """What a server may do, by the image that was last accepted for it.

    :ivar traits: The traits of that image, as they were then.
    :ivar keys: Its reservation keys.
    :ivar is_refused: Whether Nova has recorded a refused image since.
    """

    def __init__(self, traits, keys):
        self.traits = traits
        self.keys = keys
        self.is_refused = False


@pytest.mark.slow
class RandomLivesTest(MovedTest):
    """Random servers, rebuilt at random in a cloud that changes at random."""

    REQUEST_FILTERS = ('isolate_aggregates', 'reservation_prefix')
    HOSTS = ('host1', 'host2', 'host3', 'host4')
    OPTIONS = (
        ISOLATE,
        *RESERVATIONS,
        ('scheduler', 'max_attempts', len(HOSTS) + 1),
        ('quota', 'instances', -1),
        ('quota', 'cores', -1),
        (ia_conf.GROUP, 'reservation_key_sources', ['image']),
    )
    TAGS = (
        {f'trait:{A}': 'required'},
        {f'trait:{B}': 'required'},
        {MINE: '1', 'blazar:owner': OWNER},
        {YOURS: '1', 'blazar:owner': STRANGER},
    )

    def lock(self):
        """The aggregates are empty when the test begins."""

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        for host in self.HOSTS:
            for trait in (A, B):
                self.give_trait(host, trait)
        self.members = {}
        for number, tags in enumerate(self.TAGS):
            self.members[self.aggregate(f'aggregate-{number}', (), tags)] = (
                tags,
                set(),
            )
        self.models = {}
        self.history = [f'RANDOM_SEED={SEED}']
        self.compared = dict.fromkeys(['plain', 'refused', 'held'], 0)

    def test_a_move_admits_what_was_recorded_and_nothing_else(self):
        looked = 0
        while looked < CASES or not all(self.compared.values()):
            self.random.choice(
                [self.boot_one, self.rebuild_one, self.rebuild_one,
                 self.join, self.join]
            )()  # fmt: skip
            for server in list(self.models):
                self.compare(server)
                looked += 1

    def properties(self):
        """Choose what an image names."""
        return self.random.choice(
            [(), (), (f'trait:{A}',), (f'trait:{B}',), (MINE,), (YOURS,),
             (f'trait:{A}', MINE), (UNKNOWN,), ('reservation:nope',)]
        )  # fmt: skip

    def boot_one(self):
        if len(self.models) >= 6:
            for uuid in self.models:
                self._delete_server(self.api.get_server(uuid))
            self.models.clear()
        properties = self.properties()
        image = self.image(dict.fromkeys(properties, 'required'))
        request = self._build_server(
            image_uuid=image, flavor_id=self.flavor(), networks='none'
        )
        made = self.user(OWNER).post_server({'server': request})
        server = self._wait_for_assert(lambda: self.settled(made))
        self.history.append(f'boot {properties}: {server["status"]}')
        if server['status'] == 'ACTIVE':
            self.models[server['id']] = Model(*self.split(properties))

    def settled(self, server):
        server = self._show_server(server)
        assert server['status'] in ('ACTIVE', 'ERROR')
        assert server['OS-EXT-STS:task_state'] is None
        return server

    @staticmethod
    def split(properties):
        traits = {
            name.removeprefix('trait:')
            for name in properties
            if name.startswith('trait:')
        }
        return traits, {*properties} - {f'trait:{name}' for name in traits}

    def rebuild_one(self):
        if not self.models:
            return
        uuid, model = self.random.choice(list(self.models.items()))
        server = self.api.get_server(uuid)
        image, properties = server['image']['id'], self.properties()
        is_same = self.random.random() < 0.5
        if is_same:
            self.glance.images[image]['properties'] = dict.fromkeys(
                properties, 'required'
            )
        else:
            image = self.image(dict.fromkeys(properties, 'required'))
        self.user(OWNER).post_server_action(
            uuid, {'rebuild': {'imageRef': image}}
        )
        server = self._wait_for_assert(lambda: self.settled(server))
        is_refused = server['status'] == 'ERROR'
        if is_refused:
            self.admin_api.post_server_action(
                uuid, {'os-resetState': {'state': 'active'}}
            )
            self._wait_for_state_change(server, 'ACTIVE')
        if not is_same:
            model.is_refused = is_refused
            if not is_refused:
                model.traits, model.keys = self.split(properties)
        self.history.append(
            f'{uuid[:4]} rebuilt, same {is_same}, refused {is_refused}: '
            f'{properties}'
        )

    def join(self):
        """Let a host join an aggregate, or leave it."""
        number, (_, hosts) = self.random.choice([*self.members.items()])
        host = self.random.choice(self.HOSTS)
        if host in hosts:
            hosts.remove(host)
            self.admin_api.remove_host_from_aggregate(number, host)
        else:
            hosts.add(host)
            self.admin_api.add_host_to_aggregate(number, host)
        self.history.append(f'{host} joins or leaves {number}')

    def compare(self, uuid):
        """Compare the hosts of a move with Nova's filter and the model."""
        model = self.models[uuid]
        mine = hosts_for(
            self.scheduler_service.manager, self.spec({'id': uuid})
        )
        in_tree = self.in_tree(uuid)
        told = '\n'.join([*self.history, uuid, str((mine, in_tree))])
        tagged = {
            key: hosts
            for tags, hosts in self.members.values()
            for key in tags
            if key != 'blazar:owner'
        }
        expected = {*self.HOSTS}
        for trait in {A, B} - model.traits:
            expected -= tagged[f'trait:{trait}']
        if MINE in model.keys:
            expected &= tagged[MINE]
            self.compared['held'] += 1
        else:
            expected -= tagged[MINE] | tagged[YOURS]
        assert mine == expected, told
        if not model.is_refused:
            assert mine <= in_tree, told
        self.compared['refused' if model.is_refused else 'plain'] += 1

    def in_tree(self, uuid):
        """Return the hosts that Nova's own filter admits."""
        ours = request_filter.ALL_REQUEST_FILTERS
        theirs = [one for one in ours if not isinstance(one, runner.Runner)]
        self.stub_out(
            f'{request_filter.__name__}.ALL_REQUEST_FILTERS',
            [*theirs, request_filter.isolate_aggregates],
        )
        enabled = self.scheduler_service.manager.host_manager.enabled_filters
        self.scheduler_service.manager.host_manager.enabled_filters = [
            one
            for one in enabled
            if type(one).__name__ != 'IsolatedAggregatesFilter'
        ]
        try:
            return hosts_for(
                self.scheduler_service.manager, self.spec({'id': uuid})
            )
        finally:
            request_filter.ALL_REQUEST_FILTERS = ours
            self.scheduler_service.manager.host_manager.enabled_filters = (
                enabled
            )
