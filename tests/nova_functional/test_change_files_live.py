# SPDX-License-Identifier: Apache-2.0
"""The commands that a plan stands for do on a real Nova what is foretold."""

import json

from base import CONF
from openstackclient import shell
from page_cloud import PageTest

from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.effect.formats import read
from isolate_aggregates_tools.repairs import outcome

AGGREGATE = 'openstack_compute_aggregate_v2'
FLAVOR = 'openstack_compute_flavor_v2'


def change(kind, actions, before, after):
    return {
        'address': f'{kind}.x',
        'mode': 'managed',
        'type': kind,
        'change': {
            'actions': actions,
            'before': before,
            'after': after,
            'after_unknown': {},
        },
    }


def described(snapshot):
    """Return what the commands change, by names: ids of new objects differ."""
    names = {a.uuid: a.name for a in snapshot.aggregates}
    return (
        {
            a.name: (dict(a.metadata), a.hosts, a.availability_zone)
            for a in snapshot.aggregates
        },
        {
            f.name: (f.vcpus, f.ram, f.disk, f.swap, dict(f.extra_specs))
            for f in snapshot.flavors
        },
        {
            node.host: {names[each] for each in node.aggregates}
            for node in snapshot.providers
            if node.host
        },
    )


class ChangeFilesTest(PageTest):
    """An operator who runs the commands with the OpenStack client."""

    HOSTS = ('host1', 'host2', 'host3')

    def saved(self):
        path = self.config.with_name('cloud.yaml')
        result = self.run_command('snapshot', 'save', '--output', str(path))
        assert result.code == 0, result.err
        return cloud_file.load(path)

    def test_the_cloud_is_as_the_commands_of_a_plan_leave_it_in_memory(self):
        for name, hosts in (
            ('win', ['host1', 'host2']),
            ('old', ['host3']),
            ('zoned', ['host3']),
        ):
            self.aggregate(name, hosts)
        before = self.saved()
        ids = {a.name: str(a.id) for a in before.aggregates}
        large, *_ = before.flavors
        flavor = {
            'id': large.id, 'flavor_id': large.id, 'name': large.name,
            'ram': large.ram, 'vcpus': large.vcpus, 'disk': large.disk,
            'extra_specs': dict(large.extra_specs),
        }  # fmt: skip
        win = {
            'id': ids['win'], 'name': 'win', 'hosts': ['host1', 'host2'],
            'metadata': {}, 'zone': '',
        }  # fmt: skip
        plan = {
            'format_version': '1.2',
            'resource_changes': [
                change(
                    AGGREGATE,
                    ['update'],
                    win,
                    {
                        **win,
                        'name': 'windows',
                        'hosts': ['host2'],
                        'metadata': {'trait:CUSTOM_WIN': 'required'},
                    },
                ),
                change(
                    AGGREGATE,
                    ['create'],
                    None,
                    {
                        'name': 'new',
                        'zone': 'az1',
                        'hosts': ['host1'],
                        'metadata': {'-a': 'x y', 'b': 'c=d'},
                    },
                ),
                change(
                    AGGREGATE,
                    ['update'],
                    {
                        'id': ids['zoned'],
                        'name': 'zoned',
                        'zone': '',
                        'hosts': ['host3'],
                    },
                    {
                        'id': ids['zoned'],
                        'name': 'zoned',
                        'zone': 'az2',
                        'hosts': ['host3'],
                    },
                ),
                change(
                    AGGREGATE,
                    ['delete'],
                    {'id': ids['old'], 'name': 'old', 'hosts': ['host3']},
                    None,
                ),
                change(
                    FLAVOR,
                    ['delete', 'create'],
                    flavor,
                    {
                        **flavor,
                        'flavor_id': 'new-id',
                        'ram': large.ram + 64,
                        'swap': 128,
                        'extra_specs': {'trait:CUSTOM_WIN': 'required'},
                    },
                ),
            ],
        }
        path = self.config.with_name('plan.json')
        path.write_text(json.dumps(plan))
        planned = read(path, before)
        assert planned.unread == ()
        filters = Pipeline(loading.load(CONF))
        *_, foretold = outcome.outcomes(before, planned.commands, filters)
        for _, *words in planned.commands:
            assert shell.main(words) == 0, words
        after = self.saved()
        assert described(after) == described(foretold)
        # And it was not nothing.
        assert described(after) != described(before)

    def test_nova_refuses_what_the_order_of_commands_avoids(self):
        self.aggregate('a', ['host1'], zone='az1')
        self.aggregate('b', zone='az2')
        join = ['aggregate', 'add', 'host', 'b', 'host1']
        assert shell.main(join) == 1
        assert shell.main(['aggregate', 'delete', 'a']) == 1
        assert shell.main(['aggregate', 'create', 'b']) == 1
        assert shell.main(['aggregate', 'remove', 'host', 'a', 'host1']) == 0
        assert shell.main(join) == 0
