# SPDX-License-Identifier: Apache-2.0
"""A real Nova does to programs what their rehearsal did.

Each playbook and each script of ``tests/rehearsals`` has its requests and
their statuses written down. The same ones are made to a real Nova.
"""

import os
import pathlib
import sqlite3

from both_novas import BothNovasTest
from nova import availability_zones
from nova.db.api import api
import pytest
import yaml

PROGRAMS = pathlib.Path(__file__).parents[1] / 'rehearsals' / 'programs'
CLOUD = yaml.safe_load((PROGRAMS / 'cloud.yaml').read_text())
OUTCOMES = yaml.safe_load((PROGRAMS / 'outcomes.yaml').read_text())


@pytest.mark.slow
class RehearsedProgramsTest(BothNovasTest):
    """The cloud of the programs."""

    HOSTS = tuple(one['name'] for one in CLOUD['providers'])
    OCCUPIED = tuple(one['host'] for one in CLOUD['servers'])

    def prepare(self):
        for one in CLOUD['aggregates']:
            aggregate = {
                'name': one['name'],
                'availability_zone': one.get('availability_zone'),
            }
            made = self.admin_api.post_aggregate({'aggregate': aggregate})
            assert made['id'] == one['id']
            for host in one['hosts']:
                self.admin_api.add_host_to_aggregate(made['id'], host)
            action = {'set_metadata': {'metadata': one.get('metadata', {})}}
            self.admin_api.post_aggregate_action(made['id'], action)
        for one in CLOUD['flavors']:
            flavor = {key: one[key] for key in ('name', 'id', 'vcpus', 'ram')}
            flavor['disk'] = one['disk']
            flavor['os-flavor-access:is_public'] = one.get('is_public', True)
            self.admin_api.post_flavor({'flavor': flavor})
            specs = one.get('extra_specs', {})
            self.admin_api.post_extra_spec(one['id'], {'extra_specs': specs})
            for project in one.get('projects', ()):
                self.admin_api.api_post(
                    f'/flavors/{one["id"]}/action',
                    {'addTenantAccess': {'tenant': project}},
                )

    def test_each_program(self):
        """Nova is put back as it was before each of them."""
        if 'NOVA_DATABASE' in os.environ:
            self.skipTest('only SQLite can be put back so quickly')
        pooled = api.get_engine().raw_connection()
        self.addCleanup(pooled.close)
        database = pooled.driver_connection
        kept = sqlite3.connect(':memory:')
        self.addCleanup(kept.close)
        database.backup(kept)
        before = self.world.before
        for name, outcome in OUTCOMES.items():
            kept.backup(database)
            availability_zones.reset_cache()
            self.hold(before)
            for step in outcome.get('nova', ()):
                self.replay(name, step)

    def replay(self, name, step):
        method, path = step['request'].split(' ', 1)
        if path.startswith('/os-services/'):
            # Of a service of another uuid.
            return
        response, answer = self.ask(method, path, step['body'], step['minor'])
        assert response.status_code == step['status'], (name, step)
        assert answer.status == step['status'], (name, step)
        state, rehearsed = self.states()
        assert rehearsed == state, (name, step)
