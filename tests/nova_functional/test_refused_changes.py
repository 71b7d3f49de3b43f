# SPDX-License-Identifier: Apache-2.0
"""Nova refuses the changes of aggregates that the tools say it refuses."""

import dataclasses
import os
import random

from base import IMAGE
from day_two import CommandTest
import pytest

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools.compute.client import NovaClient
from isolate_aggregates_tools.compute.servers import Servers
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.outcome import refused_steps
from isolate_aggregates_tools.testing import make_compute_node, make_snapshot

# How many changes are tried.
CHANGES = int(os.environ.get('RANDOM_CHANGES', '60'))
ZONES = ('a', 'b', '', ' b', 'b:c', 'z' * 256, None)
TAGS = (
    ('key', 'value'),
    ('key', 'v' * 255),
    ('key', 'v' * 256),
    ('k' * 255, 'value'),
    ('k' * 256, 'value'),
    ('', 'value'),
    ('trait:CUSTOM_A b-c_d.e', 'required'),
    ('key/slash', 'value'),
    ('klé', 'value'),
)
NAMES = ('new', '', ' ', ' new', 'one', 'n' * 255, 'n' * 256)


class RefusedChangeTest(CommandTest):
    """A cloud of two zones with servers in some places."""

    HOSTS = ('host1', 'host2', 'host3', 'host4')

    def setUp(self):
        super().setUp()
        for host in ('host1', 'host3'):
            made = self._build_server(image_uuid=IMAGE, networks='none')
            made = self.admin_api.post_server(
                {'server': {**made, 'host': host}}
            )
            self._wait_for_state_change(made, 'ACTIVE')
        self.ids = {
            name: self.admin_api.post_aggregate(
                {'aggregate': {'name': name, 'availability_zone': zone}}
            )['id']
            for name, zone in (('one', 'a'), ('two', 'b'), ('free', None))
        }

    def snapshot(self):
        """Return the cloud as it is now."""
        nova = NovaClient(self.connection())
        return dataclasses.replace(
            make_snapshot(
                nova.aggregates(), list(map(make_compute_node, self.HOSTS))
            ),
            servers=Servers(tuple(nova.servers()), {}, True),
        )

    def change(self, chance, aggregate):
        """Return a command, and the request that it stands for."""
        path = f'/os-aggregates/{aggregate.id}'
        match chance.randrange(5):
            case 0:
                host = chance.choice(self.HOSTS)
                if host in aggregate.hosts:
                    [command] = commands.remove_hosts(aggregate, [host])
                    verb = 'remove_host'
                else:
                    [command] = commands.add_hosts(aggregate, [host])
                    verb = 'add_host'
                return command, (
                    'post',
                    f'{path}/action',
                    {verb: {'host': host}},
                )
            case 1:
                zone = chance.choice(ZONES)
                if zone is None:
                    key = 'availability_zone'
                    [command] = commands.unset(aggregate, key)
                    values = {'metadata': {key: None}}
                    body = {'set_metadata': values}
                    return command, ('post', f'{path}/action', body)
                command = commands.set_zone(aggregate, zone)
                body = {'aggregate': {'availability_zone': zone}}
                return command, ('put', path, body)
            case 2:
                key, value = chance.choice(TAGS)
                command = commands.set_value(aggregate, key, value)
                body = {'set_metadata': {'metadata': {key: value}}}
                return command, ('post', f'{path}/action', body)
            case 3:
                name = chance.choice(NAMES)
                command = commands.rename_aggregate(aggregate, name)
                return command, ('put', path, {'aggregate': {'name': name}})
            case _:
                name, zone = chance.choice(NAMES), chance.choice(ZONES)
                command = commands.create_aggregate(name, zone)
                fields = {'name': name}
                if zone is not None:
                    fields['availability_zone'] = zone
                return command, (
                    'post',
                    '/os-aggregates',
                    {'aggregate': fields},
                )

    def accepts(self, verb, path, body):
        """Return whether Nova accepts a request."""
        call = getattr(self.admin_api, f'api_{verb}')
        response = call(path, body, check_response_status=None)
        assert response.status in (200, 202, 400, 409), response.status
        self.answer = response.content
        return response.status < 300

    @pytest.mark.slow
    def test_random_changes(self):
        chance = random.Random(1)
        numbers = {True: 0, False: 0}
        for number in range(CHANGES):
            cloud = self.snapshot()
            aggregate = chance.choice(cloud.aggregates)
            command, request = self.change(chance, aggregate)
            if command.change(cloud) == cloud:
                # Nothing would change.
                continue
            refused = [
                each.reason
                for each in refused_steps(cloud, (command,), Pipeline(()))
            ]
            accepted = self.accepts(*request)
            numbers[accepted] += 1
            assert accepted == (not refused), (
                number,
                request,
                refused,
                self.answer,
            )
            made = {a.id for a in NovaClient(self.connection()).aggregates()}
            for extra in made - set(self.ids.values()):
                self.admin_api.api_delete(f'/os-aggregates/{extra}')
        assert min(numbers.values()) > CHANGES // 10
