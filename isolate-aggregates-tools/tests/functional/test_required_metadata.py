# SPDX-License-Identifier: Apache-2.0
"""A real Placement offers the hosts that Nova's host filter would pass.

The query is complete, has little room for required aggregates, or has none.
"""

import random
import uuid

from oslo_config import cfg
import placement_rows
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception, options
from isolate_aggregates import options as tools_options
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.query_limit import forbidden_length
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools import candidates
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.embedded import embedded_client
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.placement.provider import Inventory, Provider
from isolate_aggregates_tools.request import Request

HOST_FILTER = 'AggregateInstanceExtraSpecsFilter'
REQUEST_FILTER = 'aggregate_instance_extra_specs'
HOSTS = [f'host{number}' for number in range(24)]
REST = len(
    'resources=MEMORY_MB%3A64%2CVCPU%3A1'
    '&root_required=%21COMPUTE_STATUS_DISABLED'
)
SPECS = {
    'ssd': ['true', '<or> true <or> fast', 's!= true', '<in> a'],
    'gpus': ['>= 2', '= 4', '<= 1', '4'],
    'rack': ['<all-in> a b', 'ab', '!= 3'],
}
TAGS = {
    'ssd': ['true', 'fast', 'false, fast'],
    'gpus': ['1', '2', '4, 1', '8'],
    'rack': ['1', '2'],
}


def pipeline(request_filters=(), enabled_filters=()):
    """Return the filters of a configuration, with projects kept apart."""
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override(
        'request_filters',
        [*request_filters, 'isolate_tenants'],
        ia_conf.GROUP,
    )
    conf.set_override(
        'enabled_filters', list(enabled_filters), options.HOST_FILTERS
    )
    return chain.as_in_nova(conf)


AFTER = pipeline(enabled_filters=[HOST_FILTER])
BEFORE = pipeline([REQUEST_FILTER])
BOTH = pipeline([REQUEST_FILTER], [HOST_FILTER])


@pytest.fixture(scope='module')
def placement():
    with embedded_client() as found:
        yield found


def drawn(chance, placement):
    """Return a cloud, half of whose aggregates are in use by others."""
    aggregates = [
        Aggregate(
            str(uuid.UUID(int=number)),
            f'aggregate-{number}',
            {
                key: chance.choice(TAGS[key])
                for key in chance.sample(sorted(TAGS), chance.randint(1, 3))
            }
            | chance.choice([{}, {'filter_tenant_id': 'other'}]),
            frozenset(chance.sample(HOSTS, chance.randint(0, 8))),
            number,
        )
        for number in range(1, 13)
    ]
    providers = tuple(
        Provider(
            str(uuid.uuid5(uuid.NAMESPACE_DNS, host)),
            host,
            host=host,
            inventories={'VCPU': Inventory(8), 'MEMORY_MB': Inventory(8192)},
            aggregates=frozenset(
                a.uuid for a in aggregates if host in a.hosts
            ),
        )
        for host in HOSTS
    )
    placement_rows.load(providers)
    cloud = SnapshotCloud(
        Snapshot(
            origin='test', aggregates=tuple(aggregates), providers=providers
        )
    )
    cloud.placement = placement
    return cloud


def hosts(cloud, filters, request, length=0):
    """Return the hosts that are left, and the query."""
    try:
        found = candidates.find(cloud, filters, request, None, length)
    except exception.QueryNotShortened:
        raise
    except exception.RequestRefused:
        return set(), None
    return {host.name for host in found.hosts}, found


def test_the_same_hosts_remain_before_and_after_placement(placement):
    chance = random.Random(19)
    counts = {'all': 0, 'some': 0, 'none': 0, 'left': 0}
    for _ in range(3):
        cloud = drawn(chance, placement)
        for _ in range(5):
            keys = chance.sample(sorted(SPECS), chance.randint(1, 2))
            extra_specs = {key: chance.choice(SPECS[key]) for key in keys}
            request = Request(
                Flavor('f', vcpus=1, ram=64, extra_specs=extra_specs),
                project_id='mine',
            )
            expected, _ = hosts(cloud, AFTER, request)
            counts['some' if expected else 'none'] += 1
            candidates, plain = hosts(cloud, BEFORE, request)
            assert candidates == expected
            if plain is None:
                continue
            counts['all'] += 1
            # Room for all forbidden, and for ever fewer required aggregates.
            forbidden = forbidden_length(
                len(plain.decision.destination.forbidden_aggregates)
            )
            for room in (400, 200, 100, 0):
                length = REST + forbidden + room
                passed, outcome = hosts(cloud, BOTH, request, length)
                assert passed == expected
                assert len(outcome.query.to_querystring()) <= length
                counts['left'] += bool(outcome.decision.left_to_host_filters)
                # Our host filter suffices.
                candidates, _ = hosts(cloud, BEFORE, request, length)
                assert candidates == expected
    # Each case occurs.
    assert all(counts.values()), counts
