# SPDX-License-Identifier: Apache-2.0
"""No shortcut admits hosts that the plain path excludes, in a real scheduler.

As ``tests/nova/test_histories.py``, with Nova's databases, its host manager
and a real Placement, and so with fewer cases. Each request is made twice: by
queries that are as short as they have to be, and in full.

``RANDOM_CASES`` is how many requests are compared, ``RANDOM_SEED`` the history
to repeat.
"""

import dataclasses
import os
import random
from unittest import mock

from base import CONF, ISOLATE, RESERVATIONS, ShorteningCloudTest
from server_requests import PROJECTS, TAGS, TRAITS, Demand, demands, hosts_for

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import query_limit
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.aggregates.rollups import rollups
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova import registration

CASES = int(os.environ.get('RANDOM_CASES', '200'))
SEED = os.environ.get('RANDOM_SEED') or str(random.randrange(10**6))
SLOTS = 7
# Room for four of the aggregates in the query of a boot.
LIMIT = 130 + query_limit.forbidden_length(4)
PREFIX = ['reservation:']


class HistoriesTest(ShorteningCloudTest):
    """Three hosts, up to seven aggregates, and room for four of them."""

    HOSTS = ('host1', 'host2', 'host3')
    REQUEST_FILTERS = (
        'isolate_aggregates',
        'reservation_prefix',
        'isolate_tenants',
    )
    OPTIONS = (
        ISOLATE,
        *RESERVATIONS,
        # All hosts are alternates of the one that is chosen.
        ('scheduler', 'max_attempts', len(HOSTS) + 1),
        (ia_conf.GROUP, 'reservation_key_sources', ['hint']),
        (ia_conf.GROUP, 'max_query_length', LIMIT),
    )

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.history = [f'RANDOM_SEED={SEED}']
        self.counted = dict.fromkeys(['served', 'shortened'], 0)
        self.providers = {}
        for host in self.HOSTS:
            for trait in TRAITS:
                self.give_trait(host, trait)
            self.providers[host] = self._get_provider_uuid_by_host(host)
        # Five aggregates are locked alike, and host1 is in them.
        self.slots = [
            self.aggregate(f'aggregate-{slot}', self.HOSTS[:1], TAGS[0])
            for slot in range(5)
        ]
        self.slots += [None] * (SLOTS - len(self.slots))
        self.sync()

    def test_a_shortened_query_admits_a_subset(self):
        changes = [
            self.make, self.untag, self.join, self.join, self.leave,
            self.change_in_placement_alone, lambda slot: self.sync(),
        ]  # fmt: skip
        some = demands(self.HOSTS)
        compared = 0
        self.compare(Demand('boot', 'host1', (), None, PROJECTS[0]))
        assert self.counted == {'shortened': 1, 'served': 1}
        while compared < CASES:
            self.random.choice(changes)(self.random.randrange(SLOTS))
            for demand in self.random.sample(some, 5):
                self.compare(demand)
                compared += 1

    def compare(self, demand):
        """Compare the hosts that could serve a request."""
        runner = registration.installed()
        cell = self.cell_mappings['cell1']
        spec = demand.spec(cell)
        hosts = hosts_for(self.scheduler_service.manager, spec)
        known = runner.progress(spec)
        shortened = bool(
            known and known.decision and known.decision.replacement
        )
        self.counted['shortened'] += shortened
        self.counted['served'] += shortened and bool(hosts)
        unlimited = dataclasses.replace(runner._shortener, limit=0)
        with mock.patch.object(runner, '_shortener', unlimited):
            plain = hosts_for(
                self.scheduler_service.manager, demand.spec(cell)
            )
        assert hosts <= plain, '\n'.join([*self.history, str(demand)])

    # What happens to the cloud.

    def make(self, slot):
        """Create an aggregate, or add metadata to it."""
        # Rollups are used only if several aggregates have the same lock.
        tags = self.random.choice((*TAGS[:1] * 4, *TAGS))
        self.history.append(f'make({slot}) with {tags}')
        if self.slots[slot] is None:
            self.slots[slot] = self.aggregate(f'aggregate-{slot}')
        self.tag(self.slots[slot], tags)

    def untag(self, slot):
        self.history.append(f'untag({slot})')
        if self.slots[slot] is not None:
            held = self._aggregates()[self.slots[slot]]['metadata']
            self.tag(self.slots[slot], dict.fromkeys(held))

    def join(self, slot):
        """Let hosts join an aggregate in Nova, and so in Placement."""
        if self.slots[slot] is None:
            return
        known = self._aggregates()[self.slots[slot]]['hosts']
        for host in self.HOSTS:
            if host not in known and self.random.random() < 0.2:
                self.history.append(f'{host} joins {slot}')
                self.admin_api.add_host_to_aggregate(self.slots[slot], host)

    def leave(self, slot):
        """Remove all hosts from an aggregate, so that it can be deleted."""
        if self.slots[slot] is None:
            return
        for host in self._aggregates()[self.slots[slot]]['hosts']:
            self.admin_api.remove_host_from_aggregate(self.slots[slot], host)
        self.history.append(f'all leave {slot}')
        if self.random.random() < 0.5:
            self.admin_api.delete_aggregate(self.slots[slot])
            self.slots[slot] = None

    def change_in_placement_alone(self, slot):
        """Change the members of an aggregate or a rollup in Placement only."""
        host = self.random.choice(self.HOSTS)
        all_rollups = [rollup.uuid for rollup in self._rollups()]
        if self.slots[slot] is not None:
            all_rollups.append(self._aggregates()[self.slots[slot]]['uuid'])
        if all_rollups:
            uuid = self.random.choice(all_rollups)
            self.history.append(f'{host} is put into {uuid}, or out of it')
            self._put(host, self._of(host) ^ {uuid})

    def sync(self):
        """Do what ``isolate-aggregates sync`` does."""
        self.history.append('sync')
        aggregates = self._aggregates().values()
        for host in self.HOSTS:
            mine = {a['uuid'] for a in aggregates if host in a['hosts']}
            right = {r.uuid for r in self._rollups() if r.aggregates & mine}
            wrong = {r.uuid for r in self._rollups()} - right
            self._put(host, self._of(host) - wrong | right)

    def _aggregates(self):
        aggregates = self.admin_api.api_get('/os-aggregates').body[
            'aggregates'
        ]
        return {each['id']: each for each in aggregates}

    def _rollups(self):
        index = AggregateIndex(registration.installed()._cache.get())
        pipeline = Pipeline(loading.load(CONF))
        return rollups(pipeline.locks(index))

    def _of(self, host):
        return set(self._get_provider_aggregates(self.providers[host]))

    def _put(self, host, uuids):
        path = f'/resource_providers/{self.providers[host]}'
        generation = self.placement.get(path, version='1.19').body[
            'generation'
        ]
        answer = self.placement.put(
            f'{path}/aggregates',
            {
                'aggregates': sorted(uuids),
                'resource_provider_generation': generation,
            },
            version='1.19',
        )
        assert answer.status == 200, answer.body
