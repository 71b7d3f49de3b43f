# SPDX-License-Identifier: Apache-2.0
"""Which providers are hosts if compute nodes or child providers share.

The answer is that of a real Placement. ``explain`` and ``capacity list``,
which have the providers before them, have to agree with it.
"""

import json

from cases import cases

# The inventories of two hosts besides their disks.
NODE = 'VCPU: 4, MEMORY_MB: 4096'
FLAVORS = """
    flavors:
    - {name: small, vcpus: 1, ram: 1024, disk: 10}
    - {name: disk, extra_specs: {resources:DISK_GB: 5}}
    - name: grouped
      vcpus: 1
      ram: 1024
      extra_specs: {resources1:DISK_GB: 5}
"""

# A compute node that shares its disk with another one.
SHARING_NODE = f"""
    placement_aggregates:
    - {{name: shared}}
    providers:
    - name: sharing
      host: sharing
      inventories: {{{NODE}, DISK_GB: 100}}
      traits: [MISC_SHARES_VIA_AGGREGATE]
      aggregates: [shared]
    - name: anchor
      inventories: {{{NODE}}}
      aggregates: [shared]
{FLAVORS}"""

# A storage provider that is not a host.
STORAGE_BELOW_A_ROOT = f"""
    placement_aggregates:
    - {{name: shared}}
    providers:
    - name: rack
      host: null
      children:
      - name: storage
        inventories: {{DISK_GB: 100}}
        traits: [MISC_SHARES_VIA_AGGREGATE]
        aggregates: [shared]
    - name: host
      inventories: {{{NODE}, DISK_GB: 100}}
      aggregates: [shared]
{FLAVORS}"""


@cases(
    ('cloud', 'flavor', 'hosts'),
    {
        'a compute node that shares, and one that borrows': (
            SHARING_NODE,
            'small',
            # The sharing host shares all its resources: three candidates.
            {'anchor': 3, 'sharing': 1},
        ),
        'nothing is taken from the one that borrows': (
            SHARING_NODE,
            'disk',
            {'sharing': 1},
        ),
        'a disabled one still shares': (
            SHARING_NODE.replace(
                '[MISC_SHARES', '[COMPUTE_STATUS_DISABLED, MISC_SHARES'
            ),
            'small',
            {'anchor': 3},
        ),
        'a rack that only shares is no host': (
            STORAGE_BELOW_A_ROOT,
            'grouped',
            {'host': 2},
        ),
        'nor if nothing else is taken': (
            STORAGE_BELOW_A_ROOT,
            'disk',
            {'host': 1},
        ),
    },
)
def test_only_compute_nodes_are_hosts_when_providers_share(
    run, write_cloud, cloud, flavor, hosts
):
    arguments = ('--snapshot', str(write_cloud(cloud)), '--flavor', flavor)
    result = run('candidate', 'list', *arguments, '-f', 'json')
    assert (result.code, result.err) == (0, '')
    assert {
        host['name']: host['candidates']
        for host in json.loads(result.out)['hosts']
    } == hosts
    explained = run('explain', *arguments, '--candidates', '-f', 'json')
    assert [h['name'] for h in json.loads(explained.out)['hosts']] == [*hosts]
    capacity = run('capacity', 'list', *arguments, '-f', 'json')
    assert [h['name'] for h in json.loads(capacity.out)['hosts']] == [*hosts]


def test_capacity_counts_compute_nodes_that_share(run, write_cloud):
    path = write_cloud(f"""
    placement_aggregates:
    - {{name: shared}}
    providers:
    - name: sharing
      host: sharing
      inventories: {{MEMORY_MB: 4096, DISK_GB: 100}}
      traits: [MISC_SHARES_VIA_AGGREGATE]
      aggregates: [shared]
      children:
      - {{name: numa, inventories: {{VCPU: 3}}}}
{FLAVORS}""")
    result = run(
        'capacity', 'list', '--snapshot', str(path), '--flavor', 'small'
    )
    assert result.out.startswith('3 more servers of this flavor fit.\n')
