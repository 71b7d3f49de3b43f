# SPDX-License-Identifier: Apache-2.0
"""The audit finds multipliers with which Nova's weighers do not sort hosts."""

import math

from nova import objects
from nova.scheduler import host_manager, weights
from nova.scheduler.weights import ram
from oslo_config import cfg
import pytest

from isolate_aggregates import options as tools_options
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.audit.weights import multipliers
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_snapshot,
)

objects.register_all()

KEY = 'ram_weight_multiplier'
FINITE = ('1', '-1', ' 2 ', '1_0', '0.5')
INFINITE = ('nan', 'inf', '-inf', '1e400')
TEXTS = ('a', '', '2,5', '0x10')
MEGABYTES = {'h1': 1024, 'h2': 3072, 'h3': 2048}


def weighed(value):
    """Return the weights of hosts whose aggregate has a multiplier."""
    aggregate = objects.Aggregate(name='a', metadata={KEY: value})
    hosts = []
    for name, free in MEGABYTES.items():
        host = host_manager.HostState(name, name, None)
        host.aggregates = [aggregate]
        host.free_ram_mb = free
        hosts.append(host)
    handler = weights.HostWeightHandler()
    found = handler.get_weighed_objects([ram.RAMWeigher()], hosts, None)
    return {each.obj.host: each.weight for each in found}


@pytest.mark.parametrize('value', [*FINITE, *INFINITE, *TEXTS])
def test_a_multiplier_is_found_if_hosts_are_not_sorted_by_it(value):
    conf = cfg.ConfigOpts()
    tools_options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    aggregate = make_aggregate('a', {KEY: value}, ['h1'])
    snapshot = make_snapshot([aggregate], [make_compute_node('h1')])
    cloud = AuditedCloud.of(snapshot, conf)
    found = [finding.problem for finding in multipliers(cloud)]
    result = weighed(value)
    if not all(map(math.isfinite, result.values())):
        assert [one.endswith('not a finite number') for one in found] == [True]
    elif result == weighed('1') and value != '1':
        # That of the option.
        assert [one.endswith('is not a number') for one in found] == [True]
    else:
        assert found == []
