# SPDX-License-Identifier: Apache-2.0
"""Names that tenants chose stand in quotes beside the text of the plugin."""

import itertools

import pytest

NAME = 'mine, which any flavor opens; ok'
CLOUD = f"""
    settings:
      scheduler:
        enable_isolated_aggregate_filtering: true
        image_metadata_prefilter: true
        placement_req_required_member_prefix: ['reservation:']
        placement_req_default_forbidden_member_prefix: ['reservation:']
      filter_scheduler:
        enabled_filters: [AggregateImagePropertiesIsolation]
    aggregates:
    - {{name: win, hosts: [cn1], metadata: {{'trait:CUSTOM_A': required}}}}
    - {{name: linux, hosts: [cn2], metadata: {{os_distro: debian}}}}
    - {{name: other, metadata: {{'trait:CUSTOM_A': required}}}}
    providers:
    - {{name: cn1, inventories: {{VCPU: 4}}, traits: [CUSTOM_A]}}
    - {{name: cn2, inventories: {{VCPU: 4}}}}
    flavors:
    - {{name: f, vcpus: 1}}
    - {{name: boot, vcpus: 1, extra_specs: {{'hw:mem_encryption': 'true'}}}}
    images:
    - {{name: '{NAME}', id: i1, owner: p1, properties:
        {{os_distro: '{NAME}', hw_vif_model: '{NAME}'}}}}
    - {{name: '{NAME}', id: i2, owner: p1, properties:
        {{'trait:CUSTOM_A': required, 'trait:CUSTOM_NO': required}}}}
    - {{name: '{NAME}', id: i3, properties: {{hw_mem_encryption: '{NAME}'}}}}
    - {{name: '{NAME}', id: i4, owner: p1, properties:
        {{'trait:CUSTOM_A': '{NAME}'}}}}
    - {{name: '{NAME}', id: i5, properties: {{'reservation:{NAME}': 'true'}}}}
"""
COMMANDS = [
    *(
        (*command, '--flavor', flavor, '--image', image)
        for command in (
            ('explain',),
            ('candidate', 'list'),
            ('capacity', 'list'),
        )
        for flavor, image in (
            *(('f', f'i{number}') for number in (1, 2, 4, 5)),
            ('boot', 'i3'),
        )
    ),
    ('explain', '--flavor', 'f', '--availability-zone', NAME),
    ('explain', '--flavor', 'f', '--hint', f'reservation:{NAME}=1'),
    ('audit', '--fail-on', 'info'),
]


@pytest.mark.parametrize('words', COMMANDS, ids=' '.join)
def test_each_name_of_a_tenant_is_quoted(run, write_cloud, words, monkeypatch):
    monkeypatch.setenv('COLUMNS', '9999')
    result = run(*words, '--snapshot', str(write_cloud(CLOUD)))
    output = result.out + result.err
    pieces = output.split(NAME)
    for before, after in itertools.pairwise(pieces):
        quote = after[:1]
        assert quote in ("'", '"'), (before[-80:], after[:20])
        # The quotes may begin before a key that ends in the name.
        assert quote in before[-30:], (before[-80:], after[:20])
