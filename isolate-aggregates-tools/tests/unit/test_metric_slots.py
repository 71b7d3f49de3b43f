# SPDX-License-Identifier: Apache-2.0
"""How many servers fit in each zone and behind each lock, as metrics."""

import dataclasses

from cases import cases
import prometheus_client
import pytest
from samples import parsed

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.compute.servers import Server, Servers
from isolate_aggregates_tools.metrics.slots import (
    MOST,
    RANKED_FOR,
    SlotCounter,
)

CLOUD = """
    settings:
      scheduler: {enable_isolated_aggregate_filtering: true}
    aggregates:
    - {name: east, availability_zone: east, hosts: [e1, e2, e3]}
    - {name: west, availability_zone: west, hosts: [w1]}
    - name: gpus
      hosts: [e2, alone]
      metadata: {'trait:CUSTOM_GPU': required}
    providers:
    - {name: e1, inventories: {VCPU: 8}, usages: {VCPU: 6}}
    - {name: e2, inventories: {VCPU: 8}, usages: {VCPU: 1}}
    - name: e3
      inventories: {VCPU: 8}
      traits: [COMPUTE_STATUS_DISABLED]
    - {name: w1, inventories: {VCPU: 4}, usages: {VCPU: 4}}
    - {name: alone, inventories: {VCPU: 8}}
    flavors:
    - {name: small, id: s, vcpus: 1}
    - {name: large, id: l, vcpus: 5}
"""
GPUS = 'trait:CUSTOM_GPU'
DOWN = exception.ServiceError('Nova', None, 'answered with 503.')


class Collected:
    """A collector of precomputed metrics."""

    def __init__(self, families):
        self.collect = lambda: families


class Cloud:
    """A cloud file, and the servers that Nova lists."""

    def __init__(self, conf, path):
        self.conf = conf
        self.snapshot = cloud_file.load(path)
        clouds.apply_settings(conf, self.snapshot)
        self.listed = []
        self.lists = 0
        self.error = None
        self.now = 0.0
        self.slots = SlotCounter(conf, self._servers, lambda: self.now)

    def _servers(self):
        self.lists += 1
        if self.error:
            raise self.error
        return self.listed

    def found(self, servers=None):
        """Return the values by what they tell, place and flavor."""
        cloud = AuditedCloud.of(self.snapshot, self.conf, servers=servers)
        registry = prometheus_client.CollectorRegistry()
        registry.register(Collected(self.slots.families(cloud)))
        text = prometheus_client.generate_latest(registry).decode()
        prefix = 'isolate_aggregates_'
        return {
            (name.removeprefix(prefix), *labels): value
            for (name, *labels), value in parsed(text).items()
        }

    def many(self, number):
        """Have that many flavors."""
        self.snapshot = dataclasses.replace(
            self.snapshot,
            flavors=tuple(
                Flavor(f'f{n:02}', f'{n:02}', 1) for n in range(number)
            ),
        )


@pytest.fixture
def meter(conf, write_cloud):
    return Cloud(conf, write_cloud(CLOUD))


def placed(flavor, number=1):
    """Return servers with a flavor."""
    return [
        Server(f'{flavor}-{n}', 'x', 'p', 'ACTIVE', 'e1', Flavor(flavor))
        for n in range(number)
    ]


# What is counted.


def test_pci_devices_in_placement_are_counted(conf, write_cloud):
    devices = CLOUD.replace(
        '    settings:\n',
        """    settings:
      filter_scheduler: {pci_in_placement: true}
      pci: {alias: '{"name": "gpu", "resource_class": "CUSTOM_GPU"}'}
""",
    ).replace(
        '{name: w1, inventories: {VCPU: 4}, usages: {VCPU: 4}}',
        """name: w1
      inventories: {VCPU: 4}
      children: [{name: w1_gpu, inventories: {CUSTOM_GPU: 2}}]""",
    )
    devices += """
    - name: gpus
      id: g
      vcpus: 1
      extra_specs: {'pci_passthrough:alias': 'gpu:1'}
"""
    numbers = Cloud(conf, write_cloud(devices)).found()
    assert numbers['slots_up',] == 1
    assert numbers['zone_free_slots', 'g', 'gpus', 'west'] == 2
    assert numbers['zone_free_slots', 'east', 'g', 'gpus'] == 0


def test_an_alias_that_nova_api_refuses_is_named(conf, write_cloud, caplog):
    misspelt = CLOUD.replace(
        '    settings:\n',
        """    settings:
      pci: {alias: ['{"name": "a100"}']}
""",
    )
    misspelt += """
    - {name: x, id: x, extra_specs: {'pci_passthrough:alias': 'a10:1'}}
"""
    assert Cloud(conf, write_cloud(misspelt)).found()['slots_up',] == 0
    assert 'nova-api refuses flavor x: ' in caplog.text


def slots(samples, what, *place):
    """Return free and all slots of a place, small ones and large ones."""
    return [
        tuple(samples[f'{what}_{kind}', *sorted((*place, flavor_id, name))]
              for kind in ('free_slots', 'slots'))
        for flavor_id, name in (('s', 'small'), ('l', 'large'))
    ]  # fmt: skip


def test_slots_of_a_zone_count_hosts_open_to_the_plain_flavor(meter):
    numbers = meter.found()
    # Neither the locked host nor the one that is disabled.
    assert slots(numbers, 'zone', 'east') == [(2, 8), (0, 1)]
    assert slots(numbers, 'zone', 'west') == [(0, 4), (0, 0)]
    # The only host in no zone is locked.
    assert slots(numbers, 'zone', '') == [(0, 0), (0, 0)]
    assert numbers['slots_up',] == 1


def test_a_flavor_with_the_key_has_the_locked_hosts_of_its_zone(meter):
    meter.snapshot = dataclasses.replace(
        meter.snapshot,
        flavors=(Flavor('gpu', 'g', 1, extra_specs={GPUS: 'required'}),),
        providers=tuple(
            dataclasses.replace(one, traits=one.traits | {'CUSTOM_GPU'})
            if one.name in ('e2', 'alone')
            else one
            for one in meter.snapshot.providers
        ),
    )
    numbers = meter.found()
    assert numbers['zone_free_slots', *sorted(('east', 'g', 'gpu'))] == 7
    assert numbers['zone_free_slots', *sorted(('', 'g', 'gpu'))] == 8
    assert numbers['zone_free_slots', *sorted(('west', 'g', 'gpu'))] == 0


def test_slots_of_a_lock_count_its_hosts_for_each_flavor(meter):
    assert slots(meter.found(), 'lock', GPUS) == [(15, 16), (2, 2)]


def test_full_hosts_have_no_free_slots_of_their_total(meter):
    meter.snapshot = dataclasses.replace(
        meter.snapshot,
        providers=tuple(
            dataclasses.replace(one, usages={'VCPU': 8})
            for one in meter.snapshot.providers
        ),
    )
    assert slots(meter.found(), 'lock', GPUS) == [(0, 16), (0, 2)]


def test_a_request_that_the_filters_refuse_has_no_slots_in_zones(meter):
    section = ia_conf.GROUP
    meter.conf.set_override('request_filters', ['blazar_reservation'], section)
    meter.conf.set_override('reservation_required', True, section)
    numbers = meter.found()
    assert slots(numbers, 'zone', 'east') == [(0, 0), (0, 0)]
    assert numbers['slots_up',] == 1


def test_a_host_that_placement_has_in_no_zone_is_in_none(meter):
    # Nova has it in a zone, so it cannot be used without a zone either.
    meter.snapshot = dataclasses.replace(
        meter.snapshot,
        providers=tuple(
            dataclasses.replace(one, aggregates=frozenset())
            for one in meter.snapshot.providers
            if one.name == 'e1'
        ),
    )
    numbers = meter.found()
    assert slots(numbers, 'zone', 'east') == [(0, 0), (0, 0)]
    assert ('zone_slots', '', 's', 'small') not in numbers


@cases(
    ('zones', 'expected'),
    {
        'fully for each zone': ('z1, z2', (3, 3)),
        'not from outside a zone': ('z1', (3, 0)),
    },
)
def test_shared_storage_counts(conf, write_cloud, zones, expected):
    meter = Cloud(conf, write_cloud("""
        aggregates:
        - {name: z1, availability_zone: z1, hosts: [h1]}
        - {name: z2, availability_zone: z2, hosts: [h2]}
        placement_aggregates:
        - {name: shared}
        providers:
        - {name: h1, inventories: {VCPU: 8}, aggregates: [shared]}
        - {name: h2, inventories: {VCPU: 8}, aggregates: [shared]}
        - name: disks
          host: null
          inventories: {DISK_GB: 30}
          traits: [MISC_SHARES_VIA_AGGREGATE]
          aggregates: [shared, <zones>]
        flavors:
        - {name: one, id: o, vcpus: 1, disk: 10}
    """.replace('<zones>', zones)))  # fmt: skip
    numbers = meter.found()
    slots = [numbers['zone_free_slots', 'o', 'one', z] for z in ('z1', 'z2')]
    assert tuple(slots) == expected


def test_slots_follow_the_query_of_the_nova_release(meter):
    specs = {'hw:tpm_version': '2.0', 'hw:tpm_model': 'tpm-crb'}
    specs['hw:tpm_secret_security'] = 'host'
    meter.snapshot = dataclasses.replace(
        meter.snapshot,
        flavors=(Flavor('tpm', 't', 1, extra_specs=specs),),
        providers=tuple(
            dataclasses.replace(
                one,
                traits=one.traits
                | {'COMPUTE_SECURITY_TPM_2_0', 'COMPUTE_SECURITY_TPM_CRB'},
            )
            for one in meter.snapshot.providers
        ),
    )
    for release, free in ((31, 2), (34, 0)):
        meter.conf.set_override('nova_release', release, ia_conf.GROUP)
        assert meter.found()['zone_free_slots', 'east', 't', 'tpm'] == free


# Which flavors.


def test_a_cloud_of_few_flavors_is_not_asked_for_its_servers(meter):
    assert meter.found()['slots_up',] == 1
    assert meter.lists == 0


def test_the_ten_most_used_flavors_are_counted(meter):
    meter.many(14)
    meter.listed = [
        *placed('f13', 3),
        *placed('f12', 2),
        *placed('f11'),
        # A deleted flavor, and a server in a cell that is down.
        *placed('gone', 9),
        Server('x', 'x', '', 'UNKNOWN'),
    ]
    told = {
        part
        for key in meter.found()
        if key[0] == 'zone_slots'
        for part in key
        if part.startswith('f')
    }
    assert told == {'f13', 'f12', 'f11', *(f'f{n:02}' for n in range(7))}
    assert len(told) == MOST


def test_servers_that_were_read_anyway_are_not_read_again(meter):
    meter.many(11)
    servers = Servers(tuple(placed('f10')), {}, True)
    assert 'f10' in {part for key in meter.found(servers) for part in key}
    assert meter.lists == 0


def test_servers_are_listed_once_an_hour(meter):
    meter.many(11)
    for now, lists in ((0, 1), (1, 1), (RANKED_FOR, 2), (RANKED_FOR + 1, 2)):
        meter.now = now
        assert meter.found()['slots_up',] == 1
        assert meter.lists == lists


def test_without_servers_no_slots_are_counted_and_the_reason_is_logged(
    meter, caplog
):
    meter.many(11)
    meter.error = DOWN
    assert meter.found() == {('slots_up',): 0}
    [record] = caplog.records
    assert record.getMessage() == (
        'Free slots cannot be counted, because the most used flavors are not '
        'known: Nova answered with 503. Set [isolate_aggregates] '
        'metrics_flavors.'
    )
    # The next reading retries.
    meter.error = None
    assert meter.found()['slots_up',] == 1


def test_an_outdated_ranking_is_not_used(meter):
    meter.many(11)
    assert meter.found()['slots_up',] == 1
    meter.error = DOWN
    meter.now = RANKED_FOR
    assert meter.found() == {('slots_up',): 0}


def test_configured_flavors_are_counted_once_each(meter, caplog):
    meter.conf.set_override(
        'metrics_flavors', ['l', 'large', 'missing'], ia_conf.GROUP
    )
    numbers = meter.found()
    assert numbers['zone_slots', 'east', 'l', 'large'] == 1
    assert ('zone_slots', 'east', 's', 'small') not in numbers
    # One is left out, and that shows.
    assert numbers['slots_up',] == 0
    [record] = caplog.records
    assert record.getMessage().startswith(
        'Free slots of flavor missing cannot be counted: There is no flavor'
    )


@pytest.mark.parametrize('is_configured', [False, True])
@cases(
    ('extra_specs', 'is_fault'),
    {
        'makes no sense': ({'hw:cpu_policy': 'x'}, True),
        'PCI devices that are not in Placement': (
            {'pci_passthrough:alias': 'gpu:1'}, False),
        'accelerators': ({'accel:device_profile': 'fpga'}, False),
        # Nova requests VCPU by default.
        'PCPU nowhere': ({'hw:cpu_policy': 'dedicated'}, False),
    },
)  # fmt: skip
def test_a_flavor_that_cannot_be_counted_does_not_stop_others(
    meter, caplog, extra_specs, is_fault, is_configured
):
    """It is left out, and nobody is alarmed who has not asked for it."""
    broken = Flavor('broken', 'b', 1, extra_specs=extra_specs)
    meter.snapshot = dataclasses.replace(
        meter.snapshot, flavors=(broken, *meter.snapshot.flavors)
    )
    if is_configured:
        meter.conf.set_override(
            'metrics_flavors', ['b', 's', 'l'], ia_conf.GROUP
        )
    caplog.set_level('INFO')
    numbers = meter.found()
    assert numbers['slots_up',] == (not is_fault and not is_configured)
    assert not any('broken' in key for key in numbers)
    assert slots(numbers, 'lock', GPUS) == [(15, 16), (2, 2)]
    assert 'Free slots of flavor broken cannot be counted: ' in caplog.text


def test_flavors_that_cannot_be_counted_take_no_places(meter):
    devices = [
        Flavor(f'd{n}', f'd{n}', 1, extra_specs={'accel:device_profile': 'x'})
        for n in range(MOST)
    ]
    meter.snapshot = dataclasses.replace(
        meter.snapshot, flavors=(*devices, *meter.snapshot.flavors)
    )
    meter.listed = [*placed('d1', 2), *placed('small')]
    numbers = meter.found()
    assert numbers['slots_up',] == 1
    assert slots(numbers, 'lock', GPUS) == [(15, 16), (2, 2)]
