# SPDX-License-Identifier: Apache-2.0
"""The audit of servers that are running already."""

import dataclasses

from audit_clouds import (
    LICENSED,
    LOCK,
    PREFIXES,
    configuration,
    findings,
    first,
    lines,
    server,
    servers,
)
from cases import cases
from function_filter import FunctionFilter
import pytest

from isolate_aggregates.filters.pipeline import LoadedFilter
from isolate_aggregates.request.placed import Placed
from isolate_aggregates_tools import marks
from isolate_aggregates_tools.advice import trial
from isolate_aggregates_tools.advice.effects import Effects
from isolate_aggregates_tools.audit import AuditedCloud, Severity, audit
from isolate_aggregates_tools.audit import servers as server_checks
from isolate_aggregates_tools.compute.servers import ComputeService
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_snapshot,
)

WIN = make_aggregate('win', LOCK, ['h1'])
NODES = [make_compute_node('h1', traits=[LICENSED]), make_compute_node('h2')]
KEYED = make_flavor('win.small', LOCK)
PLAIN = make_flavor('m1.small')
DEBIAN = make_image('debian')
WINDOWS = make_image('windows', LOCK)


def judged(present, aggregates=(WIN,), **more):
    """Audit some servers of the small cloud."""
    return findings(aggregates, NODES, [KEYED], servers=present, **more)


def on(host, flavor, image=DEBIAN, **more):
    """Return a server on a host."""
    return server(host=host, flavor=flavor, image_id=image.id, **more)


@pytest.mark.parametrize(
    ('host', 'flavor', 'image', 'misplaced'),
    [
        ('h1', KEYED, DEBIAN, False),
        ('h1', PLAIN, WINDOWS, False),
        ('h1', PLAIN, DEBIAN, True),
        ('h2', PLAIN, DEBIAN, False),
    ],
)
def test_a_server_is_checked_with_its_flavor_and_image(
    host, flavor, image, misplaced
):
    present = servers(on(host, flavor, image), images=[DEBIAN, WINDOWS])
    findings = judged(present)
    assert [f.kind for f in findings] == ['server-misplaced'] * misplaced


def test_trials_of_repairs_do_not_judge_servers_again(monkeypatch):
    odd = make_aggregate('odd', {'trait:CUSTOM_GPU': 'Required'}, ['h2'])
    snapshot = make_snapshot([WIN, odd], NODES, flavors=[KEYED])
    present = servers(on('h1', PLAIN), images=[DEBIAN])
    cloud = AuditedCloud.of(snapshot, configuration(), servers=present)
    judged_servers = []
    verdicts = server_checks._ServerCheck.verdicts

    def counted(check, one, *more):
        judged_servers.append(one.id)
        return verdicts(check, one, *more)

    monkeypatch.setattr(server_checks._ServerCheck, 'verdicts', counted)
    before = audit(cloud)
    tried = trial.held(cloud, before, Effects.of(cloud))
    found = {each.kind: each.repairs for each in tried}
    assert {'server-misplaced', 'nothing-opens'} <= {
        kind for kind, repairs in found.items() if repairs
    }, found
    assert judged_servers == [present.placed[0].id]


# What has changed since.


@cases(
    ('host', 'then', 'now', 'said'),
    {
        'it was booted while its flavor had lost the key': (
            'h2',
            {},
            LOCK,
            'the host has no trait CUSTOM_LICENSED. Since then, flavor '
            'win.small has got trait:CUSTOM_LICENSED=required',
        ),
        'its flavor has lost the key since': (
            'h1',
            LOCK,
            {},
            'which neither flavor win.small nor image debian requires. Since '
            'then, flavor win.small has lost trait:CUSTOM_LICENSED',
        ),
    },
)
def test_a_server_whose_flavor_or_lock_has_changed(host, then, now, said):
    present = servers(
        on(host, make_flavor('win.small', then)), images=[DEBIAN]
    )
    problems = findings(
        [WIN], NODES, [KEYED, make_flavor('win.small', now)], servers=present
    )
    [problems] = [f for f in problems if f.kind == 'server-changed']
    assert problems.severity == Severity.WARNING
    assert problems.problem.startswith(
        f'runs on host {host}, which a new server'
    )
    assert problems.problem.endswith(said)
    assert problems.repairs == ()


def licensed_on_h2(traits=(), image_properties=None, image=DEBIAN):
    """Audit a server with a key on a host that is not locked."""
    flavor = KEYED if image is DEBIAN else PLAIN
    present = servers(
        dataclasses.replace(
            on('h2', flavor, image), image_properties=image_properties
        ),
        images=[image],
    )
    nodes = [NODES[0], make_compute_node('h2', traits=traits)]
    found = findings([WIN], nodes, [KEYED, PLAIN], servers=present)
    return [f for f in found if f.kind.startswith('server-')]


@cases(
    'traits',
    {
        'it has lost the trait': (),
        'sync has not yet removed the trait': (
            LICENSED,
            marks.of_trait(LICENSED),
        ),
    },
)
@pytest.mark.parametrize('image', [DEBIAN, WINDOWS])
def test_a_server_with_a_key_on_a_host_that_left_the_lock(traits, image):
    [finding] = licensed_on_h2(traits, image=image)
    assert (finding.kind, finding.severity) == (
        'server-misplaced',
        Severity.ERROR,
    )
    assert finding.problem == (
        'runs on host h2: it requires trait CUSTOM_LICENSED, and the host is '
        'not in aggregate win'
    )
    assert first(finding) == (
        'openstack server migrate --live-migration --wait id-of-vm'
    )


def test_a_host_may_have_a_trait_that_sync_did_not_add():
    assert licensed_on_h2([LICENSED]) == []


def as_placed(host, *traits, image_id=DEBIAN.id, image=DEBIAN):
    """Audit a server with a record of what it was placed with."""
    one = dataclasses.replace(
        server(host=host, flavor=PLAIN, image_id=image_id),
        placed=Placed(image_id or '', traits, {}),
    )
    found = findings(
        [WIN],
        [NODES[0], make_compute_node('h2')],
        [KEYED, PLAIN],
        servers=servers(one, images=[image]),
    )
    return {f.kind: f.problem for f in found if f.kind.startswith('server')}


@cases(
    'image',
    {
        'volume': {'image_id': None},
        'image that is gone': {'image_id': 'gone'},
        'image that lost the trait': {},
        'image that got it': {'image': make_image('debian', LOCK)},
    },
)
def test_a_server_is_checked_with_what_it_was_placed_with(image):
    """Whatever was done to its image since."""
    problems = as_placed('h2', LICENSED, **image)
    assert problems['server-misplaced'] == (
        'runs on host h2: it requires trait CUSTOM_LICENSED, and the host is '
        'not in aggregate win'
    )
    assert 'servers-image-unknown' not in problems
    assert 'server-misplaced' in as_placed('h1', **image)
    assert 'server-misplaced' not in as_placed('h1', LICENSED, **image)
    assert 'server-misplaced' not in as_placed('h2', **image)


def test_a_server_that_was_booted_before_its_image_got_the_key():
    [finding] = licensed_on_h2(image_properties={}, image=WINDOWS)
    assert finding.kind == 'server-changed'


def test_a_server_whose_image_has_changed():
    image = dataclasses.replace(
        WINDOWS, properties={**WINDOWS.properties, 'os_distro': 'windows'}
    )
    # Nova never tells traits, so that of the image may be an old one.
    for now, change in (
        (image, 'image windows has got os_distro=windows'),
        (WINDOWS, 'a lock, the traits of the host or the image changed'),
    ):
        present = servers(
            dataclasses.replace(on('h2', PLAIN, now), image_properties={}),
            images=[now],
        )
        [finding] = findings([WIN], NODES, [KEYED, PLAIN], servers=present)
        assert finding.kind == 'server-changed'
        assert finding.problem.endswith(f'Since then, {change}')


def test_a_server_with_a_deleted_flavor_has_not_changed():
    present = servers(
        dataclasses.replace(
            on('h2', make_flavor('gone'), WINDOWS), image_properties={}
        ),
        images=[WINDOWS],
    )
    assert judged(present) == []


def test_a_server_keeps_the_key_of_a_deleted_flavor():
    present = servers(on('h2', make_flavor('gone', LOCK)), images=[DEBIAN])
    [finding] = judged(present)
    assert finding.kind == 'server-misplaced'


def test_a_misplaced_server_is_reported_with_its_repair():
    [finding] = judged(servers(on('h1', PLAIN), images=[DEBIAN]))
    assert finding.severity == Severity.ERROR
    assert finding.subject == 'server vm (id-of-vm)'
    assert finding.problem.startswith('runs on host h1: aggregate win: ')
    assert 'demo' in finding.consequence
    assert not finding.safe
    assert first(finding) == (
        'openstack server migrate --live-migration --wait id-of-vm'
    )


@pytest.mark.parametrize(
    ('status', 'repair'),
    [
        (
            'PAUSED',
            'openstack server migrate --live-migration --wait id-of-vm',
        ),
        (
            'SHUTOFF',
            'openstack server migrate --wait id-of-vm && openstack server '
            'migration confirm id-of-vm',
        ),
        ('ERROR', None),
    ],
)
def test_the_repair_depends_on_the_status_of_the_server(status, repair):
    stopped = dataclasses.replace(on('h1', PLAIN), status=status)
    [finding] = judged(servers(stopped, images=[DEBIAN]))
    assert first(finding) == repair


@pytest.mark.parametrize(
    ('more', 'is_up', 'repair'),
    [
        ({}, False, 'openstack server evacuate id-of-vm'),
        # Nova moves a virtual TPM cold only, and evacuates none.
        (
            {'image_properties': {'hw_tpm_version': '2.0'}},
            True,
            'openstack server migrate --wait id-of-vm && openstack server '
            'migration confirm id-of-vm',
        ),
        ({'image_properties': {'hw_tpm_version': '2.0'}}, False, None),
    ],
)
def test_the_repair_is_a_move_that_nova_does_not_refuse(more, is_up, repair):
    present = servers(
        dataclasses.replace(on('h1', PLAIN), **more), images=[DEBIAN]
    )
    services = (ComputeService('h1', is_up=is_up),)
    [finding] = [
        each
        for each in judged(present, services=services)
        if each.kind == 'server-misplaced'
    ]
    assert first(finding) == repair
    notes = [each.note for each in finding.repairs]
    is_evacuated = bool(repair and 'evacuate' in repair)
    assert any('arrives stopped' in note for note in notes) == is_evacuated


def test_a_server_without_a_host_is_not_misplaced():
    assert judged(servers(on(None, PLAIN), images=[DEBIAN])) == []


def test_a_server_is_checked_with_its_project():
    aggregate = make_aggregate('theirs', {'filter_tenant_id': 'a'}, ['h1'])
    conf = configuration(request_filters=['isolate_tenants'])
    present = servers(
        *(
            dataclasses.replace(on('h1', PLAIN), id=p, project_id=p)
            for p in ('a', 'b')
        ),
        images=[DEBIAN],
    )
    [finding] = judged(present, [aggregate], conf=conf)
    assert finding.subject == 'server vm (b)'


def test_a_server_of_an_ended_reservation_cannot_be_moved():
    flavor = make_flavor('reserved', {'reservation:1': 'x'})
    conf = configuration(**{PREFIXES[0]: ['reservation:']})
    [finding] = judged(servers(on('h2', flavor), images=[DEBIAN]), conf=conf)
    assert (finding.kind, first(finding)) == ('server-misplaced', None)


# What is not known.


@pytest.mark.parametrize(
    ('flavor', 'kind', 'severity'),
    [
        (PLAIN, 'server-not-evaluated', Severity.INFO),
        # Operators write flavors.
        (
            make_flavor('reserved', {'reservation:1': 'x'}),
            'server-misplaced',
            Severity.ERROR,
        ),
    ],
)
def test_a_key_added_to_an_image_later_misplaces_no_server(
    flavor, kind, severity
):
    image = make_image('mine', {'reservation:none': '1'})
    conf = configuration(**{PREFIXES[0]: ['reservation:']})
    [found] = [
        one
        for one in judged(
            servers(on('h2', flavor, image), images=[image]), conf=conf
        )
        if one.kind.startswith('server-')
    ]
    assert (found.kind, found.severity) == (kind, severity)


@cases(
    'image_id',
    {
        'volume': None,
        'image that is gone': 'gone',
    },
)
def test_a_server_of_unknown_image_properties_is_not_accused(image_id):
    present = servers(server(host='h1', flavor=PLAIN, image_id=image_id))
    findings = judged(present)
    assert [(f.kind, f.severity) for f in findings] == [
        ('server-not-evaluated', Severity.INFO),
        ('servers-image-unknown', Severity.INFO),
    ]
    # Where no image can open anything, there is nothing to doubt.
    conf = configuration(trait_sources=['flavor'], reservation_key_sources=[])
    assert [f.kind for f in judged(present, conf=conf)] == ['server-misplaced']


def test_servers_with_unknown_image_properties_are_counted():
    present = servers(server(host='h2', flavor=PLAIN))
    [finding] = judged(present)
    assert (finding.kind, finding.subject) == (
        'servers-image-unknown',
        'servers: 1',
    )


def test_a_foreign_filter_can_need_any_image_property():
    snapshot = make_snapshot([WIN], NODES, flavors=[KEYED])
    present = servers(server(host='h1', flavor=PLAIN))
    conf = configuration(trait_sources=['flavor'], reservation_key_sources=[])
    audited_cloud = AuditedCloud.of(snapshot, conf, servers=present)
    foreign = LoadedFilter('foreign', FunctionFilter(lambda *_: ()))
    audited_cloud = dataclasses.replace(
        audited_cloud,
        filters=(*audited_cloud.filters, foreign),
        enabled=audited_cloud.enabled | {'foreign'},
    )
    assert [f.kind for f in audit(audited_cloud)] == [
        'server-not-evaluated',
        'servers-image-unknown',
    ]


POOL = make_aggregate(
    'pool', {'blazar:owner': 'demo'}, ['h1'], availability_zone='blazar_pool'
)


@pytest.mark.parametrize(
    ('hints', 'hints_known', 'expected'),
    [
        ({'reservation': ('pool',)}, True, []),
        ({}, True, ['server-misplaced']),
        ({}, False, ['server-not-evaluated', 'servers-hints-unknown']),
    ],
)
def test_a_server_is_checked_with_its_hints_if_nova_returns_them(
    hints, hints_known, expected
):
    conf = configuration(request_filters=['blazar_reservation'])
    present = servers(
        on('h1', PLAIN, scheduler_hints=hints),
        images=[DEBIAN],
        hints_known=hints_known,
    )
    assert [f.kind for f in judged(present, [POOL], conf=conf)] == expected


def test_unknown_hints_are_ignored_if_no_filter_reads_them():
    present = servers(on('h1', KEYED), images=[DEBIAN], hints_known=False)
    assert judged(present) == []


def test_servers_of_a_cell_that_is_down_are_counted():
    present = servers(server(host=None), server('vm2', host=None))
    [finding] = judged(present)
    assert (finding.kind, finding.severity, finding.subject) == (
        'servers-out-of-reach',
        Severity.WARNING,
        'servers: 2',
    )


def test_a_server_with_an_invalid_flavor_is_not_evaluated():
    flavor = make_flavor('odd', {'hw:cpu_policy': 'perhaps'})
    [finding] = judged(servers(on('h2', flavor), images=[DEBIAN]))
    assert (finding.kind, first(finding)) == ('server-not-evaluated', None)
    assert 'perhaps' in finding.problem


def test_servers_are_checked_only_if_they_were_read():
    assert judged(None) == []


@pytest.mark.parametrize(
    ('state', 'kind', 'problem'),
    [
        ({'is_up': False}, 'service-down', 'its compute service is down'),
        (
            {'is_enabled': False},
            'service-disabled',
            'its compute service is disabled',
        ),
    ],
)
def test_a_service_that_gets_no_servers_is_reported(state, kind, problem):
    known = (
        ComputeService('h1'),
        ComputeService('h2', **state),
        ComputeService('without-node', **state),
    )
    [finding] = judged(None, services=known)
    assert (finding.kind, finding.subject) == (kind, 'host h2')
    assert finding.problem == problem


# What Nova's host filters say.


def dropped_from_h1(metadata, flavor=PLAIN, services=None, **options):
    """Audit a server on a host that Nova's host filters drop."""
    [name] = options['enabled_filters']
    found = findings(
        [make_aggregate('special', metadata, ['h1'])],
        NODES,
        [KEYED, flavor],
        servers=servers(on('h1', flavor), images=[DEBIAN]),
        conf=configuration(**options),
        services=services,
    )
    return [
        each.problem.replace(name, 'FILTER')
        for each in found
        if each.kind == 'server-misplaced'
    ]


@cases(
    ('name', 'metadata', 'flavor', 'said'),
    {
        'projects': (
            'AggregateMultiTenancyIsolation',
            {'filter_tenant_id': 'other'},
            PLAIN,
            'reserved for the projects in filter_tenant_id; project demo is '
            'not one of them',
        ),
        'flavors': (
            'AggregateTypeAffinityFilter',
            {'instance_type': 'win.small'},
            PLAIN,
            'in aggregates with instance_type=win.small, not m1.small',
        ),
        'metadata': (
            'AggregateInstanceExtraSpecsFilter',
            {'ssd': 'false'},
            make_flavor(
                'fast', {'aggregate_instance_extra_specs:ssd': 'true'}
            ),
            'in no aggregate with ssd=true',
        ),
    },
)
def test_a_server_whose_host_a_host_filter_drops(name, metadata, flavor, said):
    assert dropped_from_h1(metadata, flavor, enabled_filters=[name]) == [
        f'runs on host h1: FILTER of Nova drops the host: it is {said}'
    ]
    # It does not run.
    assert not dropped_from_h1(metadata, flavor, enabled_filters=['RamFilter'])


def test_a_host_filter_repeats_nothing_of_its_request_filter_of_a_server():
    [problem] = dropped_from_h1(
        {'filter_tenant_id': 'other'},
        enabled_filters=['AggregateMultiTenancyIsolation'],
        request_filters=['isolate_tenants'],
    )
    assert problem.startswith('runs on host h1: aggregate special: ')
    assert 'FILTER' not in problem


def test_a_server_on_an_isolated_host():
    """Two hosts of the same aggregates differ."""
    one = on('h1', PLAIN)
    present = servers(
        one, dataclasses.replace(one, id='2', host='h2'), images=[DEBIAN]
    )
    conf = configuration(
        enabled_filters=['IsolatedHostsFilter'], isolated_hosts=['h2']
    )
    [found] = findings([], NODES, [PLAIN], servers=present, conf=conf)
    assert (found.kind, found.about.servers) == ('server-misplaced', ('2',))


def test_unknown_image_properties_open_no_host_that_a_host_filter_drops():
    present = servers(server(host='h1', flavor=PLAIN))
    theirs = make_aggregate('theirs', {'filter_tenant_id': 'other'}, ['h1'])
    conf = configuration(enabled_filters=['AggregateMultiTenancyIsolation'])
    found = findings([theirs], NODES, [PLAIN], servers=present, conf=conf)
    assert 'server-misplaced' in [each.kind for each in found]


def test_servers_stay_on_disabled_hosts():
    services = (ComputeService('h1', is_enabled=False),)
    assert not dropped_from_h1(
        {}, services=services, enabled_filters=['ComputeFilter']
    )


def test_the_default_zone_of_an_aggregate_is_found():
    """Servers that requested it before it had hosts are not freed by moves."""
    aggregate = make_aggregate(
        'pinned', hosts=['h1'], availability_zone='nova'
    )
    nodes = [make_compute_node('h1'), make_compute_node('h2')]
    image = make_image('i')
    web = server(
        'web', 'h2', PLAIN, availability_zone='nova', image_id=image.id
    )
    placed = servers(web, images=[image])

    def found(release):
        conf = configuration(nova_release=release)
        more = findings([aggregate], nodes, [PLAIN], conf=conf, servers=placed)
        return {each.kind: each for each in more}

    of_aggregate = found(34)['default-zone']
    assert '; h2 is shown in it, too' in of_aggregate.problem
    [line] = lines(found(34)['server-misplaced'])
    assert 'PUT /servers/id-of-web with the body {"server": {"pinned_' in line
    assert 'OpenStack-API-Version: compute 2.104' in line
    [line] = lines(found(33)['server-misplaced'])
    assert line.startswith('Nova can unpin a server from zone nova only from')


@pytest.mark.parametrize(
    ('zone', 'is_found'),
    [
        (None, False),
        ('az-1', False),
        ('nova', False),
        ('internal', False),
        ('empty', True),
        ('misspelt', True),
    ],
)
def test_a_zone_of_all_new_servers_has_hosts(zone, is_found):
    aggregates = [
        make_aggregate('az-1', hosts=['h1'], availability_zone='az-1'),
        make_aggregate('empty', availability_zone='empty'),
    ]
    nodes = [make_compute_node('h1'), make_compute_node('h2')]
    conf = configuration(default_schedule_zone=zone)
    found = [
        each
        for each in findings(aggregates, nodes, [PLAIN], conf=conf)
        if each.kind == 'schedule-zone-empty'
    ]
    assert bool(found) == is_found
    for each in found:
        assert each.problem.startswith(f'is {zone}, and no host')
        assert 'one of az-1, nova' in each.repairs[0].text


def test_a_zone_of_all_new_servers_has_an_enabled_host():
    aggregate = make_aggregate('az-1', hosts=['h1'], availability_zone='az-1')
    nodes = [make_compute_node('h1'), make_compute_node('h2')]
    [problem] = [
        each.problem
        for each in findings(
            [aggregate],
            nodes,
            [PLAIN],
            conf=configuration(default_schedule_zone='az-1'),
            services=[ComputeService('h1', is_enabled=False)],
        )
        if each.kind == 'schedule-zone-empty'
    ]
    assert problem == (
        'is az-1, and the compute services of all hosts in that availability '
        'zone are disabled'
    )


def test_a_zone_of_another_name_is_no_finding():
    aggregate = make_aggregate('az-1', hosts=['h1'], availability_zone='az-1')
    nodes = [make_compute_node('h1'), make_compute_node('h2')]
    assert findings([aggregate], nodes, [PLAIN]) == []
