# SPDX-License-Identifier: Apache-2.0
"""Expectations of a cloud: how they are read, met, missed and mutated."""

import dataclasses
import datetime
import json
import pathlib
import sys
import textwrap
import types

from cases import cases
import jsonschema
import junitparser
from published_schemas import schema_of
import pytest
import yaml

from isolate_aggregates.request import Flavor
from isolate_aggregates.request.properties import DeclaredProperties
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cloud.file import cloud_file
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.expectations import (
    checks,
    documents,
    first_file,
    matching,
    mutations,
    report,
)
from isolate_aggregates_tools.expectations.documents import TEST
from isolate_aggregates_tools.expectations.expectation import NothingMatches
from isolate_aggregates_tools.testing import make_aggregate

ROOT = pathlib.Path(__file__).parents[3]
CLOUD = 'examples/hosting.yaml'
EXPECTATIONS = 'examples/expectations/hosting.yaml'
CUSTOMER = '5f1c2e0b7a9d4c6e8b3a1d2c4e6f8a0b'

# Every example cloud can be described.
EXAMPLES = sorted(path.name for path in (ROOT / 'examples').glob('*.yaml'))


@pytest.fixture
def write(tmp_path):
    """Write expectations, given as the text of a list; return their path."""

    def write_file(text):
        path = tmp_path / 'expectations.yaml'
        path.write_text(
            f'version: 1\nexpectations:\n{textwrap.dedent(text)}', 'utf-8'
        )
        return str(path)

    return write_file


@pytest.fixture
def ask(run, write):
    """Test a cloud with a single expectation; return its part of the report.

    The cloud is the example, after changes in the form of options.
    """

    def ask_cloud(text, *changes, cloud=CLOUD):
        result = run(
            *('test', write(f'- {text}\n'), '--snapshot', str(cloud)),
            *('-f', 'json', *changes),
        )
        assert result.err == ''
        [entry] = json.loads(result.out)['expectations']
        assert result.code == (4 if entry['problems'] else 0)
        return [problem['problem'] for problem in entry['problems']]

    return ask_cloud


# What can be expected


@pytest.mark.parametrize(
    ('expectation', 'problems'),
    [
        ('{flavor: win.large, only: {aggregate: windows}}', []),
        ('{flavor: win.large, only: {host: [win-1, win-2, gpu-1]}}', []),
        (
            '{flavor: win.large, only: {host: win-1}}',
            ['flavor win.large may use win-2'],
        ),
        (
            '{flavor: gpu.large, only: {aggregate: gpus}}',
            ['flavor gpu.large may use no host'],
        ),
        ('{flavor: win.large, exactly: {aggregate: windows}}', []),
        (
            '{flavor: win.large, exactly: {host: [win-1, gpu-1]}}',
            ['flavor win.large may use win-2 and may not use gpu-1'],
        ),
        ('{flavor: m1.small, never: {reservation: 4d17d41a}}', []),
        ('{flavor: m1.small, never: {lock: "trait:CUSTOM_GPU"}}', []),
        (
            '{flavor: m1.small, never: {host: "node-?"}}',
            ['flavor m1.small may use node-1, node-2'],
        ),
        ('{flavor: win.large, min_hosts: 2}', []),
        (
            '{flavor: win.large, min_hosts: 3}',
            ['flavor win.large may use 2 hosts'],
        ),
        (f'{{flavor: gpu.large, project: {CUSTOMER}, min_room: 5}}', []),
        (
            f'{{flavor: gpu.large, project: {CUSTOMER}, min_room: 6}}',
            [f'flavor gpu.large in project {CUSTOMER} has room for 5 more'],
        ),
        (
            '{flavor: gpu.large, min_room: 1}',
            ['flavor gpu.large has room for 0 more'],
        ),
        ('{tenant_images: open_no_lock}', []),
        ('{tenant_images: can_open_no_lock}', []),
    ],
)
def test_a_cloud_meets_an_expectation_or_not(ask, expectation, problems):
    assert ask(expectation) == problems


def test_full_hosts_count_but_not_for_room(ask):
    for host in ('win-1', 'win-2'):
        assert ask(f'{{flavor: win.large, min_hosts: 2, name: {host}}}') == []
    assert ask('{flavor: win.large, min_room: 15}') == [
        'flavor win.large has room for 14 more'
    ]


def test_patterns_stand_for_each_name_that_matches(ask):
    assert ask('{flavor: "*", min_hosts: 1}') == [
        'flavor gpu.large may use 0 hosts'
    ]
    assert ask('{flavor: "*.medium", project: "*", only: {host: "l*"}}') == []


def test_a_zone_is_requested(ask):
    zone = '{flavor: m1.small, availability_zone: az-1, only: {host: node-1}}'
    assert ask(zone, '--set', 'windows', 'availability_zone=az-2')


def test_a_traits_image_of_a_tenant_opens_a_lock(ask, tmp_path):
    document = yaml.safe_load((ROOT / CLOUD).read_text('utf-8'))
    options = document['settings']['isolate_aggregates']
    options['trait_sources'] = ['flavor', 'image']
    open_cloud = tmp_path / 'open.yaml'
    open_cloud.write_text(yaml.safe_dump(document), 'utf-8')
    problems = ask('{tenant_images: open_no_lock}', cloud=open_cloud)
    assert [p for p in problems if 'lets any flavor use win-1, win-2' in p]
    assert all(
        'of project 9a0c3b5d7e1f4a6c8b2d4f6e8a0c1b3d' in p for p in problems
    )
    problems = ask('{tenant_images: can_open_no_lock}', cloud=open_cloud)
    assert problems[0] == (
        'an image with trait:CUSTOM_LICENSED_WINDOWS=required lets any flavor '
        'use win-1, win-2'
    )
    # The GPUs are also reserved for a project.
    assert not any('gpu' in problem for problem in problems)


def test_other_tags_hide_no_lock_that_an_image_opens(ask, write_cloud):
    cloud = write_cloud("""
        settings:
          scheduler: {enable_isolated_aggregate_filtering: true}
        aggregates:
        - name: a
          metadata:
            trait:CUSTOM_A: Required
            trait:CUSTOM_B: forbidden
            hw_cpu_policy: nonsense
          hosts: [h1]
        providers:
        - name: h1
          inventories: {VCPU: 4, MEMORY_MB: 4096}
          traits: [CUSTOM_A, CUSTOM_B]
        flavors: []
    """)
    assert ask('{tenant_images: can_open_no_lock}', cloud=cloud) == [
        'an image with trait:CUSTOM_A=required lets any flavor use h1'
    ]


def test_a_lock_survives_a_host_if_its_servers_have_room(ask):
    rack = 'examples/full-rack.yaml'
    survives = '{survives: {lock: "*"}, failures: 1}'
    [problem] = ask(survives, cloud=rack)
    assert problem == 'if win-3 fails, 1 server may have nowhere to go'
    assert ask('{survives: {host: "lin-*"}}', cloud=rack) == []
    [_, *others] = ask(
        '{survives: {aggregate: windows}, failures: 2}', cloud=rack
    )
    assert len(others) == 2


def test_the_servers_that_have_nowhere_to_go_are_the_reasons(run, write):
    path = write('- {survives: {lock: "*"}}\n')
    rack = 'examples/full-rack.yaml'
    result = run('test', path, '--snapshot', rack, '--mutate')
    assert result.code == 4
    told = run('survival', 'list', '--snapshot', rack, '-f', 'json')
    [stranded] = [
        server
        for case in json.loads(told.out)['cases']
        for server in case['without_host']
    ]
    assert "FAILED: lock '*' survives 1 host (line 3)" in result.out
    assert stranded['id'] in result.out
    assert stranded['reason'] in result.out


def test_without_servers_it_is_not_known_what_survives(run, write):
    result = run(
        'test', write('- {survives: {lock: "*"}}'), '--snapshot', CLOUD
    )
    assert (result.code, result.out) == (1, '')
    assert 'has no servers' in result.err


# What names match


def things(**more):
    """Return answers, as far as names ask them."""
    flavors = [
        Flavor('m1.small', 'id.1'),
        Flavor('m1.large', 'id.2'),
        Flavor('id.1', 'x'),
    ]
    aggregates = [
        make_aggregate('7', {}, ['h1'], id=1),
        make_aggregate('gpu', {}, ['h2', 'gone'], id=7),
        make_aggregate('None', {}, ['h3']),
        make_aggregate('empty', {}, ['gone']),
    ]
    return types.SimpleNamespace(
        snapshot=Snapshot('', aggregates=aggregates, flavors=flavors),
        compute_hosts=frozenset({'h1', 'h2', 'h3', 'h4'}),
        named_projects=frozenset({'p1', 'p2'}),
        context=types.SimpleNamespace(
            project_ids={'shop': 'p1', 'gone': None}
        ),
        places={},
        **more,
    )


@cases(
    ('names', 'flavors'),
    {
        'a name': (['m1.small'], ['m1.small']),
        'an id before a name': (['id.1'], ['m1.small']),
        'a pattern of names': (['m1.*'], ['m1.small', 'm1.large']),
        'one character': (['?d.1'], ['id.1']),
        'each once': (['id.2', 'm1.?????'], ['m1.large', 'm1.small']),
        'no id': (['id.?*'], ['id.1']),
        'nothing like it': (['m2.*'], "no flavor has a name like 'm2.*'"),
        'nothing': (
            ['m1.smal'],
            'there is no flavor m1.smal (did you mean m1.small?)',
        ),
    },
)
def test_a_name_of_a_flavor_matches(names, flavors):
    if isinstance(flavors, str):
        with pytest.raises(NothingMatches) as caught:
            matching.flavors(things(), names)
        assert str(caught.value) == flavors
    else:
        found = matching.flavors(things(), names)
        assert [flavor.name for flavor in found] == flavors


@cases(
    ('names', 'projects'),
    {
        'a name of Keystone': (['shop'], [('p1', 'shop')]),
        'an id': (['p2'], [('p2', 'p2')]),
        'each once': (['shop', '*'], [('p1', 'shop'), ('p2', 'p2')]),
        'gone': (['gone'], None),
        'nothing': (['p3'], None),
    },
)
def test_a_name_of_a_project_matches(names, projects):
    if projects is None:
        with pytest.raises(NothingMatches, match=f'no project {names[0]}'):
            matching.projects(things(), names)
    else:
        assert matching.projects(things(), names) == projects


@cases(
    ('place', 'hosts'),
    {
        'an id before a name': (matching.Place(['7']), {'h2'}),
        'no id': (matching.Place(['None']), {'h3'}),
        'a host': (matching.Place(hosts=['h4']), {'h4'}),
        'hosts': (matching.Place(['gpu'], ['h[14]', 'h?']), None),
        'a pattern': (matching.Place(['7'], ['h?']), {'h1', 'h2', 'h3', 'h4'}),
        'no compute host': (matching.Place(['empty']), None),
        'one without a compute host': (matching.Place(['*']), None),
    },
)
def test_a_place_has_the_compute_hosts_of_its_names(place, hosts):
    place = matching.Place(tuple(place.aggregates), tuple(place.hosts))
    if hosts is None:
        with pytest.raises(NothingMatches):
            place.members(things())
    else:
        assert place.members(things()) == hosts


@pytest.mark.parametrize(
    ('number', 'said'),
    [
        (1, 'flavor f0'),
        (3, 'flavors f0, f1, f2'),
        (4, 'flavors f0, f1, f2 and 1 more'),
    ],
)
def test_three_names_are_said(number, said):
    names = tuple(f'f{n}' for n in range(number))
    assert str(checks.Servers(names)) == said
    entry = first_file._entry(names, [first_file._Who()], frozenset(), {})
    assert entry['name'] == f'{said} may use no host'
    assert entry['flavor'] == ('f0' if number == 1 else list(names))


def test_an_image_could_have_the_keys_that_filters_read():
    declared = DeclaredProperties(frozenset({'reservation:*', 'trait:*'}))
    pipeline = types.SimpleNamespace(image_properties=declared)
    context = types.SimpleNamespace(pipeline=pipeline)
    aggregate = make_aggregate(
        'a',
        {
            'trait:CUSTOM_A': 'required',
            'trait:CUSTOM_B': 'forbidden',
            'reservation:1': 'x',
            'colour': 'blue',
        },
    )
    answers = types.SimpleNamespace(context=context)
    assert list(checks._keys(answers, aggregate)) == [
        ('trait:CUSTOM_A', 'required'),
        ('reservation:1', 'x'),
    ]


def test_a_name_of_several_things_names_no_place():
    aggregates = [
        make_aggregate('twice', {}, ['h1']),
        dataclasses.replace(make_aggregate('twice', {}, ['h2']), uuid='2'),
        make_aggregate('any*', {}, ['h3']),
        make_aggregate('one', {}, ['h4', 'gone']),
        make_aggregate('other', {}, ['h4']),
    ]
    answers = things()
    answers.snapshot = Snapshot('', aggregates=aggregates)
    assert first_file._places(answers) == {frozenset({'h4'}): 'one'}


# Expectations about nothing


@pytest.mark.parametrize(
    ('expectation', 'problem'),
    [
        (
            '{flavor: win.larg, never: {host: node-1}}',
            'there is no flavor win.larg (did you mean win.large?)',
        ),
        (
            '{flavor: "mac.*", never: {host: node-1}}',
            "no flavor has a name like 'mac.*'",
        ),
        (
            '{flavor: m1.small, image: [win2025, macos], min_hosts: 1}',
            'there is no image macos',
        ),
        (
            '{flavor: m1.small, project: nobody, never: {aggregate: gpus}}',
            'there is no project nobody',
        ),
        (
            '{flavor: m1.small, never: {aggregate: window}}',
            'there is no aggregate window (did you mean windows?)',
        ),
        ('{flavor: m1.small, never: {host: x}}', 'there is no host x'),
        (
            '{flavor: m1.small, never: {lock: "trait:CUSTOM_X"}}',
            'there is no lock trait:CUSTOM_X',
        ),
        (
            '{flavor: m1.small, never: {reservation: 0a}}',
            'there is no reservation 0a',
        ),
    ],
)
def test_an_expectation_about_nothing_fails(ask, expectation, problem):
    [text] = ask(expectation)
    assert text.startswith(problem)


def test_an_aggregate_without_hosts_is_nothing(ask):
    hosts = ('--remove-host', 'lease', 'lease-1')
    assert ask('{flavor: m1.small, never: {aggregate: lease}}', *hosts) == [
        'aggregate lease has no compute host'
    ]


def test_a_cloud_without_images_of_tenants_or_locks_is_nothing(ask):
    rack = 'examples/licensed-rack.yaml'
    assert ask('{tenant_images: open_no_lock}', cloud=rack) == [
        'the cloud has no image of a tenant'
    ]
    assert ask('{tenant_images: can_open_no_lock}', cloud=rack) == [
        'the cloud has no lock'
    ]


# The file


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        (
            '- flavour: m1\n  min_hosts: 1\n',
            'expectation number 1, flavour (line 3): is not a known key (did '
            'you mean flavor?)',
        ),
        (
            '- flavor: m1\n  min_hosts: 1\n- name: b\n  flavor: m1\n',
            'expectation b (line 5): must have exactly one of only, exactly, '
            'never, min_hosts, min_room, survives, tenant_images',
        ),
        (
            '- {flavor: m1, min_hosts: 1, min_room: 1}\n',
            'expectation number 1 (line 3): must have exactly one of only,',
        ),
        ('- min_hosts: 1\n', 'expectation number 1 (line 3): has no flavor'),
        (
            '- flavor: m1\n  min_hosts: 0\n',
            'expectation number 1, min_hosts (line 4): must be at least 1, '
            'not 0',
        ),
        (
            '- flavor: m1\n  only: {}\n',
            'expectation number 1, only (line 4): must not be empty',
        ),
        (
            '- flavor: m1\n  only:\n    zone: a\n',
            'only.zone (line 5): is not a known key',
        ),
        (
            '- flavor: 1\n  min_hosts: 1\n',
            'expectation number 1, flavor (line 3): must be text or a list, '
            'not 1',
        ),
        (
            '- tenant_images: always\n',
            'expectation number 1, tenant_images (line 3): must be '
            "open_no_lock or can_open_no_lock, not 'always'",
        ),
        (
            '- tenant_images: open_no_lock\n  flavor: m1\n',
            'expectation number 1, flavor (line 4): cannot be combined with '
            'tenant_images',
        ),
        ('- a: [\n', 'is not YAML: line 4, column 1: '),
    ],
)
def test_an_error_names_the_file_and_the_line(run, write, text, problem):
    path = write(text)
    result = run('test', path, '--snapshot', CLOUD)
    assert (result.code, result.out) == (1, '')
    assert result.err.startswith(f'{path}')
    assert problem in result.err


@pytest.mark.parametrize('number', range(3))
def test_a_file_that_cannot_be_read_is_named(run, tmp_path, number):
    paths = [
        EXPECTATIONS,
        CLOUD,
        'isolate-aggregates-tools/tests/unit/changes/plan.json',
    ]
    paths[number] = path = str(tmp_path / 'none')
    result = run(
        *('test', paths[0], '--snapshot', paths[1]),
        *('--terraform-plan', paths[2]),
    )
    assert (result.code, result.err) == (
        1,
        f'{path} cannot be read: No such file or directory.\n',
    )


# The reports


def test_the_reasons_are_those_of_explain(run, write):
    text = '- {flavor: m1.small, min_hosts: 3}\n'
    result = run('test', write(text), '--snapshot', CLOUD)
    lines = [line.strip() for line in result.out.splitlines()]
    assert lines[0] == (
        'FAILED: flavor m1.small may use at least 3 hosts (line 3)'
    )
    explained = run(
        *('explain', '--snapshot', CLOUD, '--flavor', 'm1.small'),
        *('-f', 'json', '--excluded'),
    )
    reasons = {
        host['name']: '; '.join(host['reasons'])
        for host in json.loads(explained.out)['hosts']
    }
    assert f'lease-1: {reasons["lease-1"]}' in lines
    assert f'win-[1-2]: {reasons["win-1"]}' in lines


def test_hosts_that_are_open_are_named_with_their_locks(run, write):
    text = '- {flavor: win.large, never: {host: "*"}}\n'
    result = run('test', write(text), '--snapshot', CLOUD)
    assert (
        'win-[1-2]: the request has the key to lock '
        'trait:CUSTOM_LICENSED_WINDOWS' in result.out
    )
    text = '- {flavor: m1.small, never: {host: "*"}}\n'
    result = run('test', write(text), '--snapshot', CLOUD)
    assert '    node-[1-2]: no lock\n' in result.out


@pytest.mark.parametrize(
    ('old', 'new', 'reason'),
    [
        (
            'enable_isolated_aggregate_filtering: true',
            'enable_isolated_aggregate_filtering: false',
            'no filter that is on keeps lock trait:CUSTOM_LICENSED_WINDOWS',
        ),
        (
            'version: 1\n',
            'version: 1\nmirror_host_aggregates: false\n',
            'lock trait:CUSTOM_LICENSED_WINDOWS is closed, but Placement '
            'lacks the membership',
        ),
    ],
    ids=['filter is off', 'Placement is behind'],
)
def test_a_host_that_is_open_without_a_key_has_the_reason(
    run, write, tmp_path, old, new, reason
):
    text = (ROOT / 'examples/windows-licensing.yaml').read_text('utf-8')
    assert old in text
    path = tmp_path / 'cloud.yaml'
    path.write_text(text.replace(old, new), 'utf-8')
    entry = '- {flavor: m1.small, image: debian-12, never: {host: "win-*"}}\n'
    result = run('test', write(entry), '--snapshot', str(path))
    assert f'    win-[1-2]: {reason}\n' in result.out


def test_the_room_is_explained_with_what_is_in_use(run, write):
    text = f'- {{flavor: gpu.large, project: {CUSTOMER}, min_room: 6}}\n'
    full = ('--remove-host', 'gpus', 'gpu-2', '--flavor-set', 'gpu.large')
    result = run(
        *('test', write(text), '--snapshot', CLOUD),
        *(*full, 'resources:VCPU=16'),
    )
    assert 'VCPU' in result.out


def test_the_document_is_as_its_schema_says(run):
    for more in (), ('--mutate', '--unset', 'lease', 'reservation:4d17d41a'):
        result = run(
            *('test', EXPECTATIONS, '--snapshot', CLOUD, '-f', 'json', *more)
        )
        document = json.loads(result.out)
        jsonschema.validate(document, schema_of('test'))
        assert all(
            (each['result'] == 'failed') == bool(each['problems'])
            for each in document['expectations']
        )
    assert document['failed'] == 3
    assert document['passed'] == len(document['expectations']) - 3


def test_lines_are_counted_from_one():
    entry = TEST['properties']['expectations']['items']
    assert entry['properties']['line']['minimum'] == 1


def test_the_document_names_all_hosts(run, write):
    path = write(
        '- {flavor: win.large, exactly: {host: [win-1, gpu-1]}}\n'
        '- {flavor: win.large, min_room: 99}\n'
    )
    result = run('test', path, '--snapshot', CLOUD, '-f', 'json')
    hosts = [
        (problem['extra_hosts'], problem['missing_hosts'])
        for each in json.loads(result.out)['expectations']
        for problem in each['problems']
    ]
    assert hosts == [(['win-2'], ['gpu-1']), ([], [])]


def test_the_digests_say_which_files_and_which_cloud(run, tmp_path):
    def digests(*more, cloud=CLOUD):
        result = run(
            *('test', EXPECTATIONS, '--snapshot', str(cloud)),
            *('-f', 'json', *more),
        )
        document = json.loads(result.out)
        files = {each['name']: each['sha256'] for each in document['files']}
        return document['cloud']['sha256'], files

    before, files = digests()
    assert {*files} == {EXPECTATIONS, CLOUD}
    # Another file of the same cloud.
    saved = tmp_path / 'cloud.yaml'
    cloud_file.save(cloud_file.load(ROOT / CLOUD), saved)
    again, other_files = digests(cloud=saved)
    assert again == before
    assert other_files[str(saved)] != files[CLOUD]
    # Another cloud.
    assert digests('--unset', 'gpus', 'filter_tenant_id')[0] != before


@pytest.mark.parametrize(
    ('one', 'other', 'is_same'),
    [
        ({'a': 1, 'b': 2}, {'b': 2, 'a': 1}, True),
        ({'a': 1}, {'a': 2}, False),
        ([{'a': 1}, {'b': 2}], [{'b': 2}, {'a': 1}], True),
        ([{'a': [{'b': 1}, {'c': 2}]}], [{'a': [{'c': 2}, {'b': 1}]}], True),
        ([1, 2], [2, 1], False),
        ([], [{}], False),
    ],
)
def test_the_order_of_objects_alone_does_not_matter(one, other, is_same):
    assert (report._canonical(one) == report._canonical(other)) is is_same


def test_a_junit_file_is_read_back(run, tmp_path):
    path = tmp_path / 'junit.xml'
    result = run(
        *('test', EXPECTATIONS, '--snapshot', CLOUD, '--output', str(path)),
        *('--set', 'windows', 'trait:CUSTOM_LICENSED_WINDOWS=no'),
    )
    assert result.code == 4
    [suite] = junitparser.JUnitXml.fromfile(str(path))
    assert (suite.name, suite.tests, suite.failures) == ('isolation', 10, 1)
    properties = {each.name: each.value for each in suite.properties()}
    assert len(properties['cloud.sha256']) == 64
    assert len(properties[f'{EXPECTATIONS}.sha256']) == 64
    [failed] = [case for case in suite if not case.is_passed]
    assert failed.name == 'no other server runs on a licensed host'
    [failure] = failed.result
    assert failure.message.startswith('flavor m1.small with image debian-13')
    assert 'win-[1-2]: no lock' in failure.text


def test_what_was_not_read_of_a_change_is_an_error(run, tmp_path):
    """A job that only looks at the file must not be green."""
    plan = tmp_path / 'plan.json'
    changes = [
        {
            'address': f'openstack_compute_{kind}_v2.x',
            'mode': 'managed',
            'type': f'openstack_compute_{kind}_v2',
            'change': {'actions': [action], 'before': {}, 'after': {}},
        }
        for kind, action in (
            ('aggregate', 'no-op'),
            ('flavor_access', 'create'),
        )
    ]
    plan.write_text(
        json.dumps({'format_version': '1.2', 'resource_changes': changes})
    )
    path = tmp_path / 'junit.xml'
    result = run(
        *('test', EXPECTATIONS, '--snapshot', CLOUD, '--output', str(path)),
        *('--terraform-plan', str(plan)),
    )
    [suite] = junitparser.JUnitXml.fromfile(str(path))
    assert (result.code, suite.failures, suite.errors) == (8, 0, 1)
    [failed] = [case for case in suite if not case.is_passed]
    [error] = failed.result
    assert 'openstack_compute_flavor_access_v2' in error.message
    shown = run(
        *('effect', 'show', '--snapshot', CLOUD),
        *('--terraform-plan', str(plan)),
    )
    assert shown.code == 8
    assert 'Nothing changes' not in shown.out
    assert 'What was read changes nothing' in shown.out


def test_a_junit_file_that_cannot_be_written_is_named(run, tmp_path):
    path = str(tmp_path / 'none' / 'junit.xml')
    result = run(
        *('test', EXPECTATIONS, '--snapshot', CLOUD, '--output', path)
    )
    assert result.code == 1
    assert f'The report cannot be written to {path}: No such' in result.err


def test_expectations_that_are_met_and_missed_are_counted():
    problem = documents.Problem(
        problem='p',
        extra_hosts=frozenset(),
        missing_hosts=frozenset(),
        reasons=(),
    )
    lines = tuple(
        documents.Expectation(
            name='e', line=1, result='passed', problems=(problem,) * number
        )
        for number in (0, 1, 2, 0, 0)
    )
    now = datetime.datetime.now(datetime.UTC)
    found = report.Report(now, 'e.yaml', 'c.yaml', '', {}, (), (), lines)
    document = report.document(found)
    assert (document.passed, document.failed) == (3, 2)
    assert not found.is_passed
    assert dataclasses.replace(found, lines=lines[:1]).is_passed


@pytest.mark.parametrize('gaps', [(), ('gap',)])
def test_a_mutation_that_nothing_notices_is_a_failure(gaps):
    now = datetime.datetime.now(datetime.UTC)
    coverage = mutations.Coverage(1, 2, gaps)
    found = report.Report(
        *(now, 'e.yaml', 'c.yaml', '', {}, (), (), (), ()), coverage
    )
    assert found.is_passed is not bool(gaps)


def test_a_junit_file_whose_folder_goes_meanwhile_is_named(tmp_path):
    path = tmp_path / 'none' / 'junit.xml'
    now = datetime.datetime.now(datetime.UTC)
    empty = report.Report(now, 'e.yaml', 'c.yaml', '', {}, (), (), ())
    with pytest.raises(tools_errors.ReportError) as caught:
        report.write_junit(empty, path)
    assert str(caught.value) == (
        f'The report cannot be written to {path}: No such file or directory.'
    )


def test_without_junitparser_it_is_said_what_to_install(
    run, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, 'junitparser', None)
    path = tmp_path / 'junit.xml'
    result = run(
        *('test', EXPECTATIONS, '--snapshot', CLOUD, '--output', str(path))
    )
    assert (result.code, path.exists()) == (1, False)
    assert result.err.endswith(
        'it needs junitparser; install isolate-aggregates-tools[junit].\n'
    )


def test_a_name_cannot_break_the_junit_file(run, write, tmp_path):
    path = tmp_path / 'junit.xml'
    text = '- {name: "a\\x01<b", flavor: m1.small, min_hosts: 1}\n'
    result = run(
        *('test', write(text), '--snapshot', CLOUD, '--output', str(path))
    )
    assert result.code == 0
    [suite] = junitparser.JUnitXml.fromfile(str(path))
    assert [case.name for case in suite] == ['a\\x01<b']


def test_csv_has_a_row_for_each_expectation(run):
    result = run('test', EXPECTATIONS, '--snapshot', CLOUD, '-f', 'csv')
    assert result.out.splitlines()[:2] == [
        '"Result","Expectation","Line","Problems"',
        '"passed","Windows servers run on licensed hosts only",8,""',
    ]


# Mutations


def mutated(run, path, *more, cloud=CLOUD):
    """Return what is said of the mutations, and the exit status."""
    result = run(
        *('test', path, '--snapshot', str(cloud), '--mutate', '-f', 'json'),
        *more,
    )
    assert result.err == ''
    return json.loads(result.out)['mutations'], result.code


def test_the_example_notices_every_mutation(run):
    mutations, code = mutated(run, EXPECTATIONS)
    assert (mutations['unnoticed'], code) == ([], 0)
    assert mutations['noticed'] == 16


def test_a_mutation_that_nothing_notices_is_listed_with_its_effect(run, write):
    path = write('- {flavor: m1.small, never: {aggregate: windows}}\n')
    mutations, code = mutated(run, path)
    assert code == 4
    texts = {
        (m['kind'], m['subject'], m['key'], m['replacement']): m['effect']
        for m in mutations['unnoticed']
    }
    assert texts[
        'trait', 'provider win-1', 'CUSTOM_LICENSED_WINDOWS', None
    ] == ('flavor win.large could no longer use win-1')
    assert texts['tag', 'aggregate gpus', 'filter_tenant_id', 'altered'] == (
        f'flavor gpu.large in project {CUSTOMER} could no longer use gpu-1, '
        'gpu-2'
    )
    assert texts[
        'extra spec',
        'flavor win.large',
        'trait:CUSTOM_LICENSED_WINDOWS',
        'forbidden',
    ] == (
        'flavor win.large could use node-1, node-2 and could no longer use '
        'win-1, win-2'
    )
    # This one is noticed.
    key = 'trait:CUSTOM_LICENSED_WINDOWS'
    assert ('tag', 'aggregate windows', key, None) not in texts


def test_what_the_cloud_does_not_meet_notices_nothing(run, write):
    path = write('- {flavor: m1.small, min_hosts: 9}\n')
    mutations, code = mutated(run, path)
    assert (mutations['noticed'], code) == (0, 4)


def test_mutations_are_shown_and_are_tests_in_junit(run, write, tmp_path):
    path = write('- {flavor: m1.small, never: {aggregate: windows}}\n')
    junit = tmp_path / 'junit.xml'
    result = run(
        *('test', path, '--snapshot', CLOUD, '--mutate'),
        *('--output', str(junit)),
    )
    assert (
        '  trait CUSTOM_GPU of provider gpu-1 removed: flavor gpu.large in '
        f'project {CUSTOMER} could no longer use gpu-1\n'
    ) in result.out
    [suite] = junitparser.JUnitXml.fromfile(str(junit))
    assert 'notices: trait CUSTOM_GPU of provider gpu-1 removed' in {
        case.name for case in suite if not case.is_passed
    }


# The first file


@pytest.mark.parametrize('name', EXAMPLES)
def test_a_first_file_describes_the_cloud_completely(run, tmp_path, name):
    path = str(tmp_path / 'first.yaml')
    cloud = f'examples/{name}'
    result = run('test', '--init', '--output', path, '--snapshot', cloud)
    assert (result.code, result.err) == (0, '')
    assert result.out.startswith('Wrote ')
    # For readers, the name of each comes first.
    lines = pathlib.Path(path).read_text('utf-8').splitlines()
    assert all(
        line.startswith('- name: ') for line in lines if line[:1] == '-'
    )
    mutations, code = mutated(run, path, cloud=cloud)
    assert (mutations['unnoticed'], code) == ([], 0)


def test_a_first_file_names_images_of_one_name_by_their_ids(run, tmp_path):
    path = tmp_path / 'first.yaml'
    text = pathlib.Path('examples/windows-licensing.yaml').read_text('utf-8')
    for name in ('windows-2022', 'debian-12'):
        own = f'- name: windows-2022\n  id: image-{name}\n'
        text = text.replace(f'- name: {name}\n', own)
    cloud = tmp_path / 'cloud.yaml'
    cloud.write_text(text, 'utf-8')
    arguments = ('test', '--init', '--output', str(path))
    assert run(*arguments, '--snapshot', str(cloud)).code == 0
    expectations = yaml.safe_load(path.read_text('utf-8'))['expectations']
    assert [each['image'] for each in expectations if 'image' in each] == [
        'image-windows-2022'
    ]


def test_a_first_file_replaces_no_other(run, tmp_path):
    path = tmp_path / 'first.yaml'
    path.write_text('mine')
    result = run('test', '--init', '--output', str(path), '--snapshot', CLOUD)
    assert (result.code, path.read_text()) == (1, 'mine')
    assert 'exists already' in result.err


def test_a_cloud_without_flavors_has_no_first_file(run, write_cloud, tmp_path):
    path = tmp_path / 'first.yaml'
    cloud = write_cloud('providers: []\n')
    result = run(
        'test', '--init', '--output', str(path), '--snapshot', str(cloud)
    )
    assert (result.code, path.exists()) == (1, False)
    assert 'the cloud has no flavors' in result.err


@pytest.mark.parametrize('option', [['--mutate'], ['e.yaml']])
def test_a_first_file_is_not_tested_at_once(run, tmp_path, option):
    path = tmp_path / 'first.yaml'
    result = run(
        'test', '--init', '--output', str(path), '--snapshot', CLOUD, *option
    )
    assert (result.code, path.exists()) == (2, False)


def test_a_place_of_many_parts_is_abridged():
    four = matching.Place(hosts=('h1', 'h2', 'h3'), locks=('trait:X',))
    assert str(four) == 'host h1, host h2, host h3 and 1 more'


def test_a_cloud_file_is_no_file_of_expectations(run, tmp_path):
    path = tmp_path / 'cloud.yaml'
    path.write_text('version: 1\nsettings: {}\n')
    result = run('test', str(path), '--snapshot', str(path))
    assert (result.code, result.out) == (1, '')
    assert result.err == (
        f'{path} is a cloud file, not a file of expectations; name it with '
        '--snapshot.\n'
    )
