# SPDX-License-Identifier: Apache-2.0
"""The filters that run outside Nova, with those of Nova itself."""

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import filter_sets, options
from isolate_aggregates.filters import loading
from isolate_aggregates_tools.mirrored import chain


def test_outside_nova_novas_own_filters_are_added_last(conf):
    first, *mirrored = chain.as_in_nova(conf).names
    assert first == 'reservation_prefix'
    assert {'compute_status', 'requested_host'} <= set(mirrored)
    assert chain.mirrored(conf)[0].is_mirrored
    assert not filter_sets.deciding(conf).filters[0].is_mirrored


def test_novas_own_filters_are_enabled_by_novas_options(conf):
    off = {'tenant_aggregate', 'IsolatedHostsFilter'}
    assert off.isdisjoint(chain.as_in_nova(conf).names)
    conf.set_override(
        'limit_tenants_to_placement_aggregate', True, ia_conf.SCHEDULER
    )
    conf.set_override(
        'enabled_filters', ['IsolatedHostsFilter'], options.HOST_FILTERS
    )
    assert off <= set(chain.as_in_nova(conf).names)


def test_installed_filters_are_listed_with_enabled_ones_first(conf):
    rows = chain.installed_filters(conf)
    found = [(row.name, row.enabled, row.note) for row in rows]
    as_in_nova = "reproduces Nova's %s, outside Nova only"
    assert found[0] == ('reservation_prefix', True, 'number 2 of 2')
    assert found[1] == (
        'nova_api',
        True,
        as_in_nova % 'API._validate_flavor_image_nostatus',
    )
    enabled = [row.enabled for row in rows]
    assert enabled == sorted(enabled, reverse=True)
    assert {
        (
            'isolate_aggregates',
            False,
            '[scheduler] enable_isolated_aggregate_filtering is false',
        ),
        (
            'tenant_aggregate',
            False,
            '[scheduler] limit_tenants_to_placement_aggregate is false',
        ),
        (
            'IsolatedHostsFilter',
            False,
            'not named in [filter_scheduler] enabled_filters',
        ),
    } < set(found)
    assert found[-2:] == [
        (name, False, 'not named in [isolate_aggregates] request_filters')
        for name in ('blazar_reservation', 'isolate_tenants')
    ]
    assert all(row.origin.startswith('isolate-aggregates ') for row in rows)


def test_filters_of_other_packages_are_listed_by_their_names(
    conf, tmp_path, monkeypatch
):
    info = tmp_path / 'other-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Name: other\nVersion: 1.0\n', 'utf-8')
    lines = [f'{name} = other:{name}' for name in ('z1', 'a2', 'z0', 'a1')]
    (info / 'entry_points.txt').write_text(
        '\n'.join([f'[{loading.NAMESPACE}]', *lines]), 'utf-8'
    )
    monkeypatch.syspath_prepend(tmp_path)
    rows = [
        (row.name, row.origin)
        for row in chain.installed_filters(conf)
        if row.origin.startswith('other ')
    ]
    assert rows == [
        (name, f'other 1.0, other:{name}') for name in ('a1', 'a2', 'z0', 'z1')
    ]


def test_enabled_filters_are_numbered(conf):
    conf.set_override(
        'enable_isolated_aggregate_filtering', True, ia_conf.SCHEDULER
    )
    [first, *_] = chain.installed_filters(conf)
    assert (first.name, first.enabled, first.note) == (
        'isolate_aggregates',
        True,
        'number 1 of 2',
    )
