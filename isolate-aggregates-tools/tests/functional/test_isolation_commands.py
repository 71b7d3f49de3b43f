# SPDX-License-Identifier: Apache-2.0
"""The everyday commands on clouds with inconsistencies or errors.

Placement is real. ``tests/nova_functional/test_day_two.py`` tests the commands
on an ordinary cloud.
"""

import dataclasses
import json
import shlex

from agreement import agreed
from cases import cases
from fake_projects import OTHER, PROJECTS, SALES, FakeProjects
from http_fakes import GLANCE, NOVA
from live_example import ISOLATE
import pytest
import requests_mock

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.compute.client import ComputeNode
from isolate_aggregates_tools.placement import edits, providers

LICENSED = 'CUSTOM_LICENSED_WINDOWS'
NEW = '8e' * 16
TAG = f'trait:{LICENSED}'
FLAVORS_ONLY = f'{ISOLATE}[isolate_aggregates]\ntrait_sources = flavor\n'


class Operator:
    """A user with the rights of an operator in the example.

    :param run: Runs the program.
    :param live: The example.
    :param http: Where its services answer.
    :param config: Writes a configuration file.
    """

    def __init__(self, run, live, http, config):
        self._run = run
        self._config = config
        self.live = live
        self.http = http
        self.written = []
        nova = live.nova
        nova.aggregates = [
            dataclasses.replace(aggregate, id=number)
            for number, aggregate in enumerate(nova.aggregates, 1)
        ]
        for aggregate in nova.aggregates:
            self.takes('POST', f'{NOVA}/os-aggregates/{aggregate.id}/action')
        for flavor in nova.flavors:
            self.takes('POST', f'{NOVA}/flavors/{flavor.id}/os-extra_specs')

    def takes(self, method, url):
        """Make a fake accept requests to a URL."""

        def answer(request, context):
            self.written.append((request.path, request.json()))
            self._tag(request)
            # novaclient expects these in any response.
            return {'aggregate': {}, 'extra_specs': {}}

        self.http.register_uri(method, url, json=answer)

    def _tag(self, request):
        """Store the metadata that is written to an aggregate."""
        written = request.json().get('set_metadata')
        aggregates = self.live.nova.aggregates
        for place, found in enumerate(aggregates):
            if written and request.path.endswith(f'/{found.id}/action'):
                merged = {**found.metadata, **written['metadata']}
                aggregates[place] = dataclasses.replace(
                    found,
                    metadata={
                        k: v for k, v in merged.items() if v is not None
                    },
                )

    def does(self, *arguments, config=ISOLATE):
        """Run a command and return how it ended."""
        return self._run(
            '--config-file', self._config(config), *agreed(arguments)
        )

    def document(self, *arguments, config=ISOLATE):
        """Run a command that must succeed; return its JSON output."""
        result = self.does(*arguments, '-f', 'json', config=config)
        only_shown = '--dry-run' in arguments
        assert (result.code, result.err) == (3 if only_shown else 0, '')
        return json.loads(result.out)


@pytest.fixture
def operator(run, live, http, config, in_environment):
    """An operator of the example."""
    return Operator(run, live, http, config)


def whats(document):
    return [change['change'] for change in document['changes']]


def of_metadata(operator):
    """Let flavors require metadata of rack-1; return a configuration."""
    nova = operator.live.nova
    nova.aggregates[1] = dataclasses.replace(
        nova.aggregates[1], metadata={'ssd': 'true', 'gpus': '4'}
    )
    scope = 'aggregate_instance_extra_specs:'
    nova.flavors = [
        Flavor('fast', id='1', extra_specs={f'{scope}ssd': 'true'}),
        Flavor('slow', id='2', extra_specs={f'{scope}ssd': 'false'}),
        Flavor(
            'render',
            id='3',
            extra_specs={f'{scope}gpus': '>= 2', 'trait:CUSTOM_A': 'required'},
        ),
        Flavor('wrong', id='4', extra_specs={f'{scope}gpus': '>= many'}),
    ]
    return (
        f'{ISOLATE}[isolate_aggregates]\n'
        'request_filters = isolate_aggregates,aggregate_instance_extra_specs\n'
    )


# How aggregates are identified.


@cases(
    'name',
    {
        'name': 'rack-1',
        'number': '2',
        'uuid': 'cdb6ccb8-9ac4-5fb9-b3f2-1ac4f5d5a80e',
    },
)
def test_an_aggregate_can_be_given_by_name_number_or_uuid(operator, name):
    nova = operator.live.nova
    nova.aggregates[1] = dataclasses.replace(
        nova.aggregates[1], uuid='cdb6ccb8-9ac4-5fb9-b3f2-1ac4f5d5a80e'
    )
    document = operator.document(
        'lock', 'create', name, '--trait', 'CUSTOM_A', '--dry-run'
    )
    assert 'tag aggregate rack-1 trait:CUSTOM_A=required' in whats(document)


def test_a_name_of_two_aggregates_is_refused_with_their_uuids(operator):
    operator.live.nova.aggregates += [
        Aggregate('uuid-x', 'twice', id=8),
        Aggregate('uuid-y', 'twice', id=9),
    ]
    result = operator.does('lock', 'create', 'twice', '--trait', 'CUSTOM_A')
    assert result.code == 1
    assert result.err == (
        "The aggregate name 'twice' is not unique; name one of uuid-x, uuid-y "
        'instead.\n'
    )


# lock and unlock.


def test_a_tag_of_another_value_is_replaced(operator):
    nova = operator.live.nova
    nova.aggregates[1] = dataclasses.replace(
        nova.aggregates[1], metadata={'trait:CUSTOM_A': 'Required'}
    )
    operator.document('lock', 'create', 'rack-1', '--trait', 'CUSTOM_A')
    [(path, body)] = operator.written
    assert path.endswith('/os-aggregates/2/action')
    assert body == {
        'set_metadata': {'metadata': {'trait:CUSTOM_A': 'required'}}
    }


@cases(
    ('sources', 'unless'),
    {
        'flavors open locks': ('flavor', ''),
        'images too': ('flavor,image', ' unless their image requires it'),
    },
)
def test_lock_warns_of_flavors_that_want_the_aggregate_without_a_key(
    operator, sources, unless
):
    config = f'{of_metadata(operator)}trait_sources = {sources}\n'
    lock = ('lock', 'create', 'rack-1', '--trait', 'CUSTOM_A', '--dry-run')
    notes = operator.document(*lock, config=config)['notes']
    assert notes[-1] == (
        'flavor fast requires metadata of aggregate rack-1 but not '
        f'trait CUSTOM_A, so servers cannot use its hosts{unless}'
    )
    notes = operator.document(*lock, '--trait', 'CUSTOM_B', config=config)
    assert notes['notes'][-1].startswith(
        'flavors fast, render require metadata of aggregate rack-1 but not '
        'traits CUSTOM_A, CUSTOM_B, so'
    )
    # No filter reads metadata.
    notes = operator.document(*lock)['notes']
    assert 'metadata' not in str(notes)


def test_show_lists_the_flavors_that_want_metadata_of_an_aggregate(operator):
    config = of_metadata(operator)
    shown = operator.document('lock', 'show', 'rack-1', config=config)
    assert shown['sent_flavors'] == ['fast', 'render']
    rack = operator.document('lock', 'show', 'rack-1')
    assert rack['sent_flavors'] is None


def test_unlock_takes_off_a_tag_that_nothing_can_open(operator):
    nova = operator.live.nova
    nova.aggregates[1] = dataclasses.replace(
        nova.aggregates[1],
        metadata={'TRAIT:custom-a': 'required', 'trait:CUSTOM_B': 'maybe'},
    )
    operator.document('lock', 'delete', 'rack-1')
    assert [body for _, body in operator.written] == [
        {'set_metadata': {'metadata': {'TRAIT:custom-a': None}}}
    ]


def test_unlock_takes_the_traits_before_a_host_leaves(operator):
    operator.document('lock', 'create', 'rack-1', '--trait', LICENSED)
    host = sorted(operator.live.nova.aggregates[1].hosts)[0]
    assert (
        whats(
            operator.document(
                'lock', 'delete', 'rack-1', '--host', host, '--dry-run'
            )
        )[-1]
        == f'remove host {host} from aggregate rack-1'
    )
    result = operator.does(
        'lock', 'delete', 'rack-1', '--host', host, '--trait', 'A'
    )
    assert result.code == 2
    assert '--host is not allowed with --trait or --domain' in result.err


def test_unlock_reports_that_an_aggregate_is_not_locked(operator):
    nothing = operator.document('lock', 'delete', 'rack-1')
    assert nothing['changes'] == []
    assert nothing['notes'] == ['aggregate rack-1 is not locked by any trait']
    wrong = operator.document(
        'lock', 'delete', 'rack-1', '--trait', 'CUSTOM_A'
    )
    assert wrong['changes'] == []
    assert wrong['notes'] == [
        'aggregate rack-1 has no tag trait:CUSTOM_A=required'
    ]


def test_placement_gives_the_uuids_that_an_old_nova_omits(operator):
    operator.live.nova.newest = '2.41'
    document = operator.document(
        'lock', 'create', 'rack-1', '--trait', LICENSED
    )
    # win-1 has it already.
    assert f'add trait {LICENSED} to host linux-1' in whats(document)
    assert f'add trait {LICENSED} to host win-1' not in whats(document)


def test_each_node_of_a_bare_metal_host_gets_the_trait(operator):
    nova = operator.live.nova
    nova.nodes = [
        ComputeNode(
            node.uuid,
            node.name,
            'ironic' if node.name.startswith('linux') else node.host,
        )
        for node in nova.nodes
    ]
    nova.aggregates[1] = dataclasses.replace(
        nova.aggregates[1], hosts=frozenset({'ironic'})
    )
    document = operator.document(
        'lock', 'create', 'rack-1', '--trait', 'CUSTOM_A'
    )
    assert [what for what in whats(document) if 'add trait' in what] == [
        f'add trait CUSTOM_A to host ironic (node linux-{number})'
        for number in (1, 2, 3)
    ]


def test_a_host_without_a_node_is_named_and_the_others_are_locked(operator):
    nova = operator.live.nova
    nova.nodes = [node for node in nova.nodes if node.name != 'win-1']
    result = operator.does('lock', 'create', 'rack-1', '--trait', 'CUSTOM_A')
    assert result.code == 1
    assert result.err == (
        'Host win-1: Nova lists no compute node for it; start nova-compute '
        'there, or remove the host from the aggregate.\n'
    )
    assert 'add trait CUSTOM_A to host linux-1' in result.out
    assert 'host win-1' not in result.out


def test_lock_works_without_glance_and_reports_it(operator):
    operator.http.get(f'{GLANCE}/v2/images', status_code=500, text='Oops')
    document = operator.document(
        'lock', 'create', 'rack-1', '--trait', 'CUSTOM_A'
    )
    assert {change['result'] for change in document['changes']} == {'done'}
    assert document['lock']['traits'] == ['CUSTOM_A']
    assert document['lock']['aggregate']['name'] == 'rack-1'
    note = document['notes'][-1]
    assert note.startswith('the images were not checked: Glance at ')
    [left] = document['left']
    assert left.startswith('no flavor requires CUSTOM_A yet')


def test_images_do_not_count_when_only_flavors_open(operator):
    lock = ('lock', 'create', 'win-hosts', '--trait', LICENSED)
    assert operator.document(*lock)['notes'] == [
        f'{LICENSED} is required by flavor win.small and image windows-2022'
    ]
    document = operator.document(*lock, config=FLAVORS_ONLY)
    assert document['notes'] == [f'{LICENSED} is required by flavor win.small']
    grant = ('key', 'add', '--image', 'windows-2022', '--trait', LICENSED)
    document = operator.document(*grant, config=FLAVORS_ONLY)
    assert any(
        'images open nothing here' in note for note in document['notes']
    )


def test_a_lock_without_effect_is_warned_about(operator):
    result = operator.does(
        'lock',
        'create',
        'win-hosts',
        '--trait',
        LICENSED,
        config='[scheduler]\n',
    )
    assert result.code == 0
    assert 'the tag has no effect' in result.err


def test_unlock_names_flavors_and_images_that_still_require_the_trait(
    operator,
):
    nova = operator.live.nova
    untagged = dataclasses.replace(nova.aggregates[0], metadata={})

    def untag(request, context):
        nova.aggregates[0] = untagged
        return {'aggregate': {}}

    operator.http.post(f'{NOVA}/os-aggregates/1/action', json=untag)
    document = operator.document('lock', 'delete', 'win-hosts')
    assert document['left'] == [
        f'{LICENSED} is still required by flavor win.small and image '
        'windows-2022, but by no aggregate any more; their servers find a '
        'host only if another program added the trait; next, run key remove'
    ]


# grant and revoke.


def test_a_flavor_with_the_id_detail_can_be_changed(operator):
    operator.live.nova.flavors.append(Flavor('odd', 'detail'))
    operator.takes('POST', f'{NOVA}/flavors/detail/os-extra_specs')
    operator.document('key', 'add', '--flavor', 'detail', '--trait', LICENSED)
    [(path, body)] = operator.written
    assert path.endswith('/flavors/detail/os-extra_specs')
    assert body == {'extra_specs': {TAG: 'required'}}


def test_a_trait_in_a_request_group_is_a_key_and_is_not_revoked(operator):
    operator.live.nova.flavors.append(
        Flavor('vf', 'vf', extra_specs={f'trait_NIC:{LICENSED}': 'required'})
    )
    key = ('--flavor', 'vf', '--trait', LICENSED)
    assert operator.document('key', 'add', *key)['changes'] == []
    result = operator.does('key', 'remove', *key)
    assert result.code == 1
    assert (
        f'Flavor vf still requires {LICENSED} through trait_NIC:{LICENSED}, '
        'which belongs to a request group; change the flavor yourself.\n'
    ) in result.err
    assert operator.written == []


def test_a_key_without_a_lock_is_granted_with_a_note(operator):
    nova = operator.live.nova
    nova.aggregates = [
        dataclasses.replace(aggregate, metadata={})
        for aggregate in nova.aggregates
    ]
    document = operator.document(
        'key', 'add', '--flavor', 'm1.small', '--trait', LICENSED
    )
    assert whats(document) == [f'set {TAG}=required on flavor m1.small']
    assert any('no aggregate requires' in note for note in document['notes'])


def test_an_image_that_no_tenant_owns_needs_no_warning(operator):
    grant = ('key', 'add', '--image', 'debian-12', '--trait', LICENSED)
    document = operator.document(*grant, '--dry-run')
    assert document['notes'] == [
        'existing servers keep what they were booted with'
    ]


def test_a_protected_image_property_is_one_sentence(operator):
    operator.http.patch(
        requests_mock.ANY, status_code=403, text='Property is protected'
    )
    result = operator.does(
        'key', 'remove', '--image', 'windows-2022', '--trait', LICENSED
    )
    assert result.code == 1
    assert 'failed' in result.out
    assert result.err.startswith('Glance at ')
    assert '(403)' in result.err


def test_a_conflict_is_not_mistaken_for_a_missing_property(operator):
    operator.http.patch(
        requests_mock.ANY, status_code=409, text='Image is being deleted'
    )
    result = operator.does(
        'key', 'remove', '--image', 'windows-2022', '--trait', LICENSED
    )
    assert result.code == 1
    assert 'Image is being deleted' in result.err


def test_completed_changes_are_reported_after_an_interruption(operator):
    def interrupted(request, context):
        raise KeyboardInterrupt

    operator.http.post(f'{NOVA}/os-aggregates/2/action', json=interrupted)
    result = operator.does('lock', 'create', 'rack-1', '--trait', 'CUSTOM_A')
    assert result.code != 0
    assert 'Traceback' not in result.err
    rows = [line.split('|')[1:3] for line in result.out.splitlines()[3:8]]
    assert [(what.strip()[:12], how.strip()) for what, how in rows if how] == [
        ('create trait', 'done'),
        ('create trait', 'done'),
        ('tag aggregat', 'unknown'),
        ('add trait CU', 'not done'),
        ('add trait CU', 'not done'),
    ]
    assert 'it is unknown whether the last change was made' in result.err


def test_completed_changes_are_reported_if_flavors_cannot_be_read(operator):
    operator.http.get(f'{NOVA}/flavors/detail', status_code=403, json={})
    result = operator.does(
        'lock', 'create', 'rack-1', '--trait', 'CUSTOM_A', '-f', 'json'
    )
    assert result.code == 1
    assert '(403)' in result.err
    document = json.loads(result.out)
    assert {change['result'] for change in document['changes']} == {'done'}
    assert document['lock']['traits'] == ['CUSTOM_A']
    assert document['lock']['aggregate']['name'] == 'rack-1'


# list and show.

BROKEN = """
    settings:
      scheduler: {enable_isolated_aggregate_filtering: true}
    mirror_host_aggregates: false
    aggregates:
    - name: cn1
      metadata: {trait:CUSTOM_A: required, trait:CUSTOM_B: required}
      hosts: [cn1, gone]
    - {name: empty, metadata: {trait:CUSTOM_A: required}}
    - {name: fast, metadata: {ssd: 'true'}, hosts: [cn2]}
    providers:
    - {name: cn1, inventories: {VCPU: 4}, traits: [CUSTOM_A]}
    - {name: cn2}
    - {name: node1, host: metal, inventories: {CUSTOM_M: 1}}
    flavors:
    - {name: a, extra_specs: {trait:CUSTOM_A: required}}
    - name: ab
      extra_specs: {trait:CUSTOM_A: required, trait:CUSTOM_B: required}
    images:
    - {name: b, properties: {trait:CUSTOM_B: required}}
"""


@pytest.fixture
def broken(run, write_cloud):
    """Run a command on a cloud that is inconsistent."""
    path = str(write_cloud(BROKEN))

    def ask(*arguments):
        return run(*arguments, '--snapshot', path)

    return ask


def told(result):
    assert (result.code, result.err) == (0, '')
    return json.loads(result.out)


def test_a_host_outside_an_aggregate_without_locks_is_shown(broken):
    output = told(broken('lock', 'show', 'fast', '-f', 'json'))
    assert output['problems'] == [
        'host cn2 is in aggregate fast, but its resource provider cn2 is not, '
        'so that servers that are sent there cannot use it'
    ]


def test_show_lists_the_problems_of_a_lock(broken):
    output = told(broken('lock', 'show', 'CUSTOM_A', '-f', 'json'))
    assert output['kind'] == 'lock'
    assert output['name'] == 'trait:CUSTOM_A'
    assert output['problems'] == [
        'host cn1 is in aggregate cn1, but its resource provider cn1 is not, '
        'so that the locks of the aggregate have no effect there',
        'host cn1 lacks CUSTOM_B, so that servers for aggregate cn1 cannot '
        'use it',
        'host gone has no compute node in Placement',
        'aggregate empty has no hosts',
    ]


@cases(
    ('kind', 'flavors', 'images'),
    {
        'all traits are needed': ('aggregate', ['ab'], []),
        'those of all its aggregates': ('host', ['ab'], []),
    },
)
def test_show_lists_only_flavors_and_images_that_open_all_locks(
    broken, kind, flavors, images
):
    output = told(broken('lock', 'show', 'cn1', '--kind', kind, '-f', 'json'))
    assert output['kind'] == kind
    assert output['locks'] == ['trait:CUSTOM_A', 'trait:CUSTOM_B']
    assert (output['flavors'], output['images']) == (flavors, images)


def test_an_ambiguous_name_is_refused(broken):
    result = broken('lock', 'show', 'cn1')
    assert result.code == 1
    assert result.err == (
        "The lock, aggregate or host name 'cn1' is not unique; name one of "
        'cn1 --kind aggregate, cn1 --kind host instead.\n'
    )


def test_an_unknown_name_is_one_sentence(broken):
    result = broken('lock', 'show', 'cn1', '--kind', 'lock')
    assert result.code == 1
    assert result.err.startswith("There is no lock with the name or id 'cn1'")


def test_a_host_has_the_name_of_its_node(broken):
    output = told(broken('lock', 'show', 'node1', '-f', 'json'))
    assert (output['name'], output['nodes']) == ('metal', ['node1'])
    assert output['capacity'] == {'CUSTOM_M': {'free': 1, 'used': 0}}
    assert output['locks'] == []
    assert output['problems'] == []


def test_a_host_that_only_nova_knows_is_shown(broken):
    output = told(broken('lock', 'show', 'gone', '-f', 'json'))
    assert output['nodes'] == []
    [problem] = output['problems']
    assert problem.startswith('host gone ')


def test_a_lock_adds_no_trait_beside_its_opposite(run, write_cloud):
    """Another program attests the host, and says that it is not trusted."""
    path = write_cloud("""\
aggregates:
- {name: trusted, hosts: [h1, h2]}
providers:
- {name: h1, inventories: {VCPU: 4}, traits: [CUSTOM_TRUSTED_FALSE]}
- {name: h2, inventories: {VCPU: 4}}
flavors:
- {name: f, vcpus: 1}
""")
    result = run(
        *('lock', 'create', 'trusted', '--trait', 'CUSTOM_TRUSTED_TRUE'),
        *('--snapshot', str(path)),
    )
    assert 'add trait CUSTOM_TRUSTED_TRUE to host h2' in result.out
    assert 'add trait CUSTOM_TRUSTED_TRUE to host h1' not in result.out
    said = ' '.join(result.err.split())
    assert said.startswith(
        'Host h1 does not get CUSTOM_TRUSTED_TRUE: another program keeps '
        'CUSTOM_TRUSTED_FALSE'
    )


def test_locks_are_listed_with_their_aggregates_and_hosts(broken):
    rows = broken('lock', 'list', '-f', 'csv', '--quote', 'none')
    assert rows.out.splitlines() == [
        'Lock,Aggregates,Hosts,VCPU,PCPU,MEMORY_MB,DISK_GB,'
        'VCPU used,PCPU used,MEMORY_MB used,DISK_GB used',
        'trait:CUSTOM_A,2,2,4,,,,0,,,',
        'trait:CUSTOM_B,1,2,4,,,,0,,,',
    ]
    # An empty cell could not be told from its separator.
    assert broken('lock', 'list', '-f', 'value').out.splitlines() == [
        'trait:CUSTOM_A 2 2 4 - - - 0 - - -',
        'trait:CUSTOM_B 1 2 4 - - - 0 - - -',
    ]
    assert 'PCPU' not in broken('lock', 'list').out


@pytest.mark.parametrize('form', ['shell', 'value'])
def test_nested_values_are_json_in_flat_formats(broken, form):
    document = told(
        broken('lock', 'show', 'cn1', '--kind', 'host', '-f', 'json')
    )
    # Only documents have it.
    del document['schema']
    arguments = ('lock', 'show', 'cn1', '--kind', 'host', '-f', form)
    for name, value in document.items():
        written = broken(*arguments, '-c', name).out.rstrip('\n')
        if form == 'shell':
            [written] = shlex.split(written.partition('=')[2])
        if isinstance(value, list | dict):
            assert json.loads(written) == value
        else:
            assert written == ('' if value is None else str(value))


def test_locks_without_the_option_are_listed_with_a_warning(run, write_cloud):
    text = BROKEN.replace('filtering: true', 'filtering: false')
    path = str(write_cloud(text))
    result = run(
        'lock', 'list', '--snapshot', path, '-f', 'value', '-c', 'Lock'
    )
    assert result.out.splitlines() == ['trait:CUSTOM_A', 'trait:CUSTOM_B']
    assert 'the tag has no effect' in result.err


def test_a_cloud_without_locks_is_reported(run, write_cloud):
    result = run(
        'lock', 'list', '--snapshot', str(write_cloud('aggregates: []'))
    )
    assert (result.code, result.out) == (0, 'No aggregate is locked.\n')


DOMAIN = f'{ISOLATE}[isolate_aggregates]\nrequest_filters = isolate_tenants\n'


def test_an_aggregate_is_reserved_for_a_domain_that_sync_follows(operator):
    keystone = FakeProjects(operator.http)
    lock = operator.document(
        'lock', 'create', 'rack-1', '--domain', 'sales', config=DOMAIN
    )
    assert [change['result'] for change in lock['changes']] == ['done']
    own = f'filter_tenant_id:domain:{SALES}'
    rack = operator.live.nova.aggregates[1]
    assert rack.metadata == {own: SALES, f'{own}:{OTHER}': OTHER}

    keystone.projects[1] = {'id': NEW, 'name': 'new', 'domain_id': SALES}
    synced = operator.document('sync', '--yes', config=DOMAIN)
    assert [(tag['action'], tag['subject']) for tag in synced['tags']] == [
        ('add project', NEW),
        ('remove project', OTHER),
    ]
    rack = operator.live.nova.aggregates[1]
    assert rack.metadata == {own: SALES, f'{own}:{NEW}': NEW}

    operator.document(
        'lock', 'delete', 'rack-1', '--domain', 'sales', config=DOMAIN
    )
    assert operator.live.nova.aggregates[1].metadata == {}


def test_repairs_of_other_findings_let_no_project_in(operator):
    keystone = FakeProjects(operator.http)
    operator.document(
        'lock', 'create', 'rack-1', '--trait', 'CUSTOM_A', config=DOMAIN
    )
    operator.document(
        'lock', 'create', 'rack-1', '--domain', 'sales', config=DOMAIN
    )
    before = operator.live.nova.aggregates[1]
    keystone.projects[1] = {'id': NEW, 'name': 'new', 'domain_id': SALES}
    placement = operator.live.placement
    [provider, *_] = placement.resource_providers(required=['CUSTOM_A'])
    edits.change_traits(
        placement, provider['uuid'], lambda traits: traits - {'CUSTOM_A'}
    )

    result = operator.does('audit', '--fix', '--yes', config=DOMAIN)

    assert 'trait CUSTOM_A' in result.out + result.err
    assert 'CUSTOM_A' in providers.traits(placement, provider['uuid'])
    assert operator.live.nova.aggregates[1] == before
    assert NEW in result.out


def test_sync_fails_and_changes_no_tag_if_keystone_does(operator):
    FakeProjects(operator.http)
    operator.document(
        'lock', 'create', 'rack-1', '--domain', 'sales', config=DOMAIN
    )
    before = list(operator.live.nova.aggregates)
    operator.http.get(PROJECTS, status_code=403)

    result = operator.does('sync', '--yes', config=DOMAIN)

    assert result.code == 1
    assert 'projects of domains cannot be updated: ' in result.err
    assert operator.live.nova.aggregates == before


def test_a_key_for_a_domain_needs_an_aggregate(operator):
    result = operator.does(
        'key', 'add', '--domain', 'sales', '--trait', LICENSED
    )
    assert result.code == 2
    assert '--domain and --aggregate need each other' in result.err
