# SPDX-License-Identifier: Apache-2.0
"""sync runs together with a nova-compute that writes the same providers."""

from base import CONF, ISOLATE, LiveTest

from isolate_aggregates.aggregates import rollups
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools.operate.sync import apply, plan
from isolate_aggregates_tools.operate.sync.snapshot import read
from isolate_aggregates_tools.placement import edits, providers

LICENSED = 'CUSTOM_LICENSED_WINDOWS'
MARK = f'CUSTOM_ISOLATE_SYNC_{LICENSED}'
ROLLUP = rollups.uuid_of(f'trait:{LICENSED}')


class SyncTest(LiveTest):
    """The APIs are real, and so is nova-compute."""

    OPTIONS = (ISOLATE,)

    def sync(self):
        cloud = self.live_cloud()
        snapshot = read(cloud)
        locks = Pipeline(loading.load(CONF)).locks
        result = apply.carry_out(
            plan.make(snapshot, locks(snapshot.index)),
            cloud.placement,
            cloud.aggregates,
            locks,
        )
        assert result.is_complete, result
        return {f'{c.host}: {c.action} {c.subject}' for c in result.changes}

    def traits(self, host):
        provider = self._get_provider_uuid_by_host(host)
        return set(providers.traits(self.live_cloud().placement, provider))

    def members(self, host):
        provider = self._get_provider_uuid_by_host(host)
        return set(self.live_cloud().placement.aggregates(provider))

    def test_sync_isolates_a_host_by_its_tag(self):
        host1_alone = self.traits('host1')
        tag = {f'trait:{LICENSED}': 'required'}
        number = self.aggregate('licensed', ['host1'], tag)
        more = self.aggregate('more-licensed', ['host1'], tag)
        # Nova could not reach Placement when the host was added.
        mirrored = self.members('host1')
        assert len(mirrored) == 2
        edits.change_aggregates(
            self.live_cloud().placement,
            self._get_provider_uuid_by_host('host1'),
            lambda _: frozenset(),
        )

        assert self.sync() == {
            'host1: add aggregate licensed',
            'host1: add aggregate more-licensed',
            f'host1: add rollup trait:{LICENSED}',
            f'host1: add trait {LICENSED}',
        }
        # nova-compute writes its provider too.
        self._run_periodics()
        assert self.traits('host1') == host1_alone | {LICENSED, MARK}
        assert self.members('host1') == mirrored | {ROLLUP}
        assert self.sync() == set()
        keyed = self.flavor({f'trait:{LICENSED}': 'required'})
        assert self.host_for(keyed) == 'host1'
        assert self.host_for(self.flavor()) == 'host2'

        for aggregate in (number, more):
            self.tag(aggregate, {f'trait:{LICENSED}': None})
        self._run_periodics()
        assert self.sync() == {
            f'host1: remove rollup trait:{LICENSED}',
            f'host1: remove trait {LICENSED}',
        }
        self._run_periodics()
        assert self.traits('host1') == host1_alone
        assert self.members('host1') == mirrored
