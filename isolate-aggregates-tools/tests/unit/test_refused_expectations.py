# SPDX-License-Identifier: Apache-2.0
"""``test`` leaves out the changes that Nova refuses, and names them."""

import json

import pytest

from isolate_aggregates_tools.request import resources

CLOUD = """
version: 1
aggregates:
- {name: one, availability_zone: az1, hosts: [h1]}
- {name: two, availability_zone: az2}
providers:
- {name: h1, inventories: {VCPU: 4}}
flavors:
- {name: small, vcpus: 1}
"""


def test_a_refused_change_has_a_status_of_its_own(run, tmp_path):
    cloud, expected = tmp_path / 'cloud.yaml', tmp_path / 'expected.yaml'
    cloud.write_text(CLOUD)
    run(
        *('test', '--init', '--snapshot', str(cloud)),
        *('--output', str(expected)),
    )
    asked = ('test', str(expected), '--snapshot', str(cloud))
    assert run(*asked).code == 0
    # A host cannot be in two zones.
    change = ('--add-host', 'two', 'h1')
    result = run(*asked, *change)
    assert result.code == 7, (result.out, result.err)
    assert 'Nova refuses this step, which is left out: ' in result.out
    document = json.loads(run(*asked, *change, '-f', 'json').out)
    [refused] = document['refused']
    assert refused['step'].startswith('openstack aggregate add host ')
    assert document['changes'] == []


def test_each_pci_device_is_a_group_of_its_own():
    aliases = [
        '{"name": "a1", "vendor_id": "10de", "product_id": "20b5"}',
        '{"name": "nic", "resource_class": "fast nic", "traits": "blue"}',
    ]
    groups = list(resources.pci_groups('a1:2,nic:1', aliases))
    assert [dict(group.resources) for group in groups] == [
        {'CUSTOM_PCI_10DE_20B5': 1},
        {'CUSTOM_PCI_10DE_20B5': 1},
        {'CUSTOM_FAST_NIC': 1},
    ]
    assert groups[2].required_traits == {'CUSTOM_BLUE'}
    assert len({group.id for group in groups}) == 3


@pytest.mark.parametrize('aliases', [[], ['{}'], ['no JSON']])
def test_an_alias_that_is_not_there_is_named(aliases):
    with pytest.raises(ValueError, match=r'\[pci\] alias has'):
        list(resources.pci_groups('a1:1', aliases))
