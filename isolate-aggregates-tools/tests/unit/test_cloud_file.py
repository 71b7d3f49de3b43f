# SPDX-License-Identifier: Apache-2.0
"""Cloud files: errors, optional parts and output."""

import contextlib
import dataclasses
import os
import pathlib
import random
import re
import tempfile

from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg
import pytest
from thorough import examples
import yaml

from isolate_aggregates import options as tools_options
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cloud.file import (
    checked_yaml,
    cloud_file,
    quick_yaml,
)
from isolate_aggregates_tools.cloud.file import document as cloud_document
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.compute.servers import Port, Server, Servers
from isolate_aggregates_tools.placement.provider import (
    MAX_INT,
    Inventory,
    Provider,
)
from isolate_aggregates_tools.request import ResourceGroup

EXAMPLES = sorted((pathlib.Path(__file__).parents[3] / 'examples').glob('*'))
EXAMPLES = [path for path in EXAMPLES if path.suffix == '.yaml']

AGG = 'aaaaaaaa-aaaa-4aaa-aaaa-aaaaaaaaaaaa'


@contextlib.contextmanager
def unprivileged():
    """Drop root privileges, as root may read and write all files."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def problem_of(path):
    """Return the error for a file, without its path and the full stop."""
    with pytest.raises(tools_errors.CloudFileError) as caught:
        cloud_file.load(path)
    message = str(caught.value)
    # A problem of the whole file, or those of its parts.
    start = re.match(rf'{re.escape(str(path))} |Cloud file .*?: ', message)
    assert start
    assert message.endswith('.')
    assert '\n' not in message
    return message.removeprefix(start[0]).removesuffix('.')


@pytest.fixture
def load(write_cloud):
    """Load a cloud from a text to which the version is added."""
    return lambda text: cloud_file.load(write_cloud(text))


# What cannot be read at all.


@cases(
    ('content', 'problem'),
    {
        'empty': (b'', 'is empty'),
        'only a comment': (b'# later\n', 'is empty'),
        'no YAML': (
            b'version: 1\naggregates: [\n',
            'is not YAML: line 3, column 1: expected the node content, but '
            "found '<stream end>'",
        ),
        'two documents': (
            b'version: 1\n---\nversion: 1\n',
            'is not YAML: line 2, column 1: but found another document',
        ),
        'a tag that would run code': (
            b'version: 1\nflavors: !!python/object:os.system []\n',
            'is not YAML: line 2, column 10: could not determine a '
            "constructor for the tag 'tag:yaml.org,2002:python/object:"
            "os.system'",
        ),
        'a character YAML cannot have': (
            b'version: 1\nflavors: "\0"\n',
            'is not YAML: unacceptable character #x0000: special characters '
            'are not allowed in "<unicode string>", position 21',
        ),
        'a key twice': (
            b'version: 1\nflavors: []\nimages: []\nflavors: []\n',
            "is not YAML: line 4, column 1: the key 'flavors' is given twice",
        ),
        'a key twice, further down': (
            b'version: 1\naggregates:\n- name: a\n  metadata: {x: 1, x: 2}\n',
            "is not YAML: line 4, column 20: the key 'x' is given twice",
        ),
        'a key that is a number': (
            b'version: 1\naggregates:\n- {name: a, metadata: {7: x}}\n',
            'is not YAML: line 3, column 24: a key must be text; put it in '
            'quotes',
        ),
        'a key that is a truth value': (
            b'version: 1\nimages:\n- {name: a, properties: {yes: x}}\n',
            'is not YAML: line 3, column 26: a key must be text; put it in '
            'quotes',
        ),
        'a key that is a list': (
            b'version: 1\n? [a]\n: x\n',
            'is not YAML: line 2, column 3: a key must be text; put it in '
            'quotes',
        ),
        'a list that contains itself': (
            b'version: 1\nproviders: &p\n- {name: a, children: *p}\n',
            'is nested too deeply, or contains itself',
        ),
        'too many brackets': (
            b'version: 1\nproviders: ' + b'[' * 1000,
            'is nested too deeply, or contains itself',
        ),
        'latin-1': (
            'version: 1  # für später'.encode('latin-1'),
            'is not UTF-8 text: invalid start byte at byte 15',
        ),
    },
)
def test_invalid_yaml_is_refused_with_line_and_column(
    tmp_path, content, problem
):
    path = tmp_path / 'cloud.yaml'
    path.write_bytes(content)
    assert problem_of(path) == problem


@cases(
    ('path', 'problem'),
    {
        'missing': (
            'missing.yaml',
            'cannot be read: No such file or directory',
        ),
        'directory': ('.', 'cannot be read: Is a directory'),
        'failing device': (
            '/proc/self/mem',
            'cannot be read: Input/output error',
        ),
    },
)
def test_an_unreadable_file_is_refused_with_the_reason(
    tmp_path, path, problem
):
    assert problem_of(tmp_path / path) == problem


def test_a_file_without_permission_is_refused_with_the_reason(tmp_path):
    path = tmp_path / 'cloud.yaml'
    path.touch(0o000)
    with unprivileged():
        problem = problem_of(path)
    assert problem == 'cannot be read: Permission denied'


# What is YAML, but no cloud.


@cases(
    ('content', 'problem'),
    {
        'text': (
            'hello',
            "line 1: must be a mapping of keys to values, not 'hello'",
        ),
        'list': (
            '[]',
            'line 1: must be a mapping of keys to values, not a list',
        ),
        'no version': ('flavors: []', "line 1: has no 'version'"),
        'a later version': (
            'version: 2',
            'version (line 1): must be 1, not 2',
        ),
        'quoted version': (
            'version: "1"',
            "version (line 1): must be 1, not '1'",
        ),
    },
)
def test_a_document_must_be_a_mapping_with_a_known_version(
    tmp_path, content, problem
):
    path = tmp_path / 'cloud.yaml'
    path.write_text(content)
    assert problem_of(path) == problem


@cases(
    ('text', 'problem'),
    {
        'misspelt section': (
            'provider: []',
            'provider (line 2): is not a known key (did you mean providers?)',
        ),
        'mapping for a list': (
            'providers: {name: a}',
            'providers (line 2): must be a list, not a mapping',
        ),
        'no name': (
            'aggregates: [{metadata: {}}]',
            "aggregate number 1 (line 2): has no 'name'",
        ),
        'number for a name': (
            'flavors: [{name: 1}]',
            'flavor 1, name (line 2): must be text, not 1',
        ),
        'number for a uuid': (
            'aggregates: [{name: a, uuid: 123}]',
            'aggregate a, uuid (line 2): must be text, not 123',
        ),
        'bad uuid of an aggregate': (
            'aggregates: [{name: a, uuid: win-hosts}]',
            "aggregate a, uuid (line 2): must be a uuid, not 'win-hosts'",
        ),
        'bad uuid of a child': (
            'providers: [{name: a, children: [{name: b, uuid: "1"}]}]',
            "provider a, child b, uuid (line 2): must be a uuid, not '1'",
        ),
        'one host instead of a list': (
            'aggregates: [{name: a, hosts: cn1}]',
            "aggregate a, hosts (line 2): must be a list, not 'cn1'",
        ),
        'list as metadata': (
            'aggregates: [{name: a, metadata: {x: [1]}}]',
            'aggregate a, metadata.x (line 2): must be text or a number '
            'or true or false, not a list',
        ),
        'text for a total': (
            'providers: [{name: a, inventories: {VCPU: many}}]',
            'provider a, inventories.VCPU (line 2): must be an integer, not '
            "'many'",
        ),
        'fraction for a total': (
            'providers: [{name: a, inventories: {VCPU: 4.0}}]',
            'provider a, inventories.VCPU (line 2): must be an integer, not '
            '4.0',
        ),
        'total of zero': (
            'providers: [{name: a, inventories: {VCPU: 0}}]',
            'provider a, inventories.VCPU (line 2): must be at least 1, not 0',
        ),
        'misspelt part of an inventory': (
            'providers: [{name: a, inventories: {VCPU: {resreved: 1}}}]',
            "provider a, inventories.VCPU (line 2): has no 'total'; "
            'provider a, inventories.VCPU.resreved (line 2): is not a known '
            'key (did you mean reserved?)',
        ),
        'infinite ratio': (
            'providers: [{name: a, inventories: '
            '{VCPU: {total: 1, allocation_ratio: .inf}}}]',
            'provider a, inventories.VCPU.allocation_ratio (line 2): must'
            ' be a number, not inf',
        ),
        'resource class in lower case': (
            'providers: [{name: a, inventories: {vcpu: 1}}]',
            'provider a, inventories (line 2): vcpu is not a standard '
            'resource class (did you mean VCPU?); the name of a custom one '
            'must be CUSTOM_ followed by A-Z, 0-9 and _',
        ),
        'trait in lower case': (
            'providers: [{name: a, traits: [custom_a]}]',
            'provider a, traits (line 2): custom_a is not a standard trait; '
            'the name of a custom one must be CUSTOM_ followed by A-Z, 0-9 '
            'and _',
        ),
        'declared names': (
            'traits: [CUSTOM_A, custom_b]\nresource_classes: [VCPUS]',
            'traits (line 2): custom_b is not a standard trait; the name of a '
            'custom one must be CUSTOM_ followed by A-Z, 0-9 and _; '
            'resource_classes (line 3): VCPUS is not a standard resource '
            'class (did you mean VCPU?); the name of a custom one must be '
            'CUSTOM_ followed by A-Z, 0-9 and _',
        ),
        'the same trait twice': (
            'providers: [{name: a, traits: [CUSTOM_A, CUSTOM_A]}]',
            'provider a, traits (line 2): has CUSTOM_A more than once',
        ),
        'negative usage': (
            'providers: [{name: a, usages: {VCPU: -1}}]',
            'provider a, usages.VCPU (line 2): must be at least 0, not -1',
        ),
        'settings without a group': (
            'settings: {scheduler: true}',
            'settings.scheduler (line 2): must be a mapping of keys to '
            'values, not True',
        ),
    },
)
def test_a_value_of_the_wrong_type_is_named_by_its_path(
    write_cloud, text, problem
):
    assert problem_of(write_cloud(text)) == problem


@cases(
    ('text', 'problem'),
    {
        'unknown aggregate': (
            'providers: [{name: a, aggregates: [rack-1]}]',
            "provider a, aggregates (line 2): names 'rack-1', which is "
            'neither a uuid nor an aggregate of this file',
        ),
        'usage without inventory': (
            'providers: [{name: a, children: [{name: b, usages: {VGPU: 1}}]}]',
            'provider a, child b, usages.VGPU (line 2): has usage but no '
            'inventory',
        ),
        'a child as a compute node': (
            'providers: [{name: a, children: [{name: b, host: b}]}]',
            'provider a, child b, host (line 2): is set, but only a root '
            'provider can be a compute node',
        ),
        'two aggregates of one name': (
            'aggregates: [{name: a}, {name: a}]',
            "aggregate a (line 2): another one also has the name 'a'; each "
            'must have its own',
        ),
        'two aggregates with one uuid, written differently': (
            f'aggregates: [{{name: a, uuid: {AGG}}}, '
            f'{{name: b, uuid: {AGG.upper()}}}]',
            f"aggregate b (line 2): another one also has the uuid '{AGG}'; "
            'each must have its own',
        ),
        'a host aggregate and a placement aggregate of one name': (
            'aggregates: [{name: a}]\nplacement_aggregates: [{name: a}]',
            'placement aggregate a (line 3): another one also has the name '
            "'a'; each must have its own",
        ),
        'two placement aggregates with one uuid': (
            f'placement_aggregates: [{{name: a, uuid: {AGG}}}, '
            f'{{name: b, uuid: {AGG}}}]',
            'placement aggregate b (line 2): another one also has the uuid '
            f"'{AGG}'; each must have its own",
        ),
        'two providers of one name, in different trees': (
            'providers: [{name: a}, {name: b, children: [{name: a}]}]',
            "provider b, child a (line 2): another one also has the name 'a'; "
            'each must have its own',
        ),
        'three flavors of one name': (
            'flavors: [{name: a}, {name: a}, {name: a}]',
            "flavor a (line 2): another one also has the name 'a'; each must "
            'have its own',
        ),
        'two flavors with one id, as a number and as text': (
            'flavors: [{name: a, id: 1}, {name: b, id: "1"}]',
            "flavor b (line 2): another one also has the id '1'; each must "
            'have its own',
        ),
        'two images with one id': (
            'images: [{name: a, id: x}, {name: b, id: x}]',
            "image b (line 2): another one also has the id 'x'; each must "
            'have its own',
        ),
        'two images that nothing tells apart': (
            'images: [{name: a}, {name: a}]',
            "image a (line 2): another one also has no id and the name 'a'; "
            'each must have its own',
        ),
    },
)
def test_contradictory_parts_are_named(write_cloud, text, problem):
    assert problem_of(write_cloud(text)) == problem


def test_an_unknown_setting_is_refused_and_the_known_ones_are_listed(
    write_cloud,
):
    path = write_cloud('settings: {scheduler: {max_results: 5}}')
    assert problem_of(path).startswith(
        'settings.scheduler.max_results (line 2): is not a setting of a cloud '
        'file (did you mean scheduler.max_placement_results?); the settings '
        'are DEFAULT.default_availability_zone, '
        'DEFAULT.default_schedule_zone, '
        'DEFAULT.internal_service_availability_zone, '
        'scheduler.enable_isolated_aggregate_filtering, '
    )


def test_at_most_five_problems_are_reported(write_cloud):
    path = write_cloud('flavors:\n' + 7 * '- {}\n')
    *message, last = problem_of(path).split('; ')
    assert message == [
        f"flavor number {number} (line {number + 2}): has no 'name'"
        for number in range(1, 6)
    ]
    assert last == 'and 2 more problems'


def test_an_unknown_name_is_reported_once(write_cloud):
    path = write_cloud(
        'aggregates:\n'
        '- {name: win, hosts: [cn-1]}\n'
        '- {name: gpu, hosts: [cn-1]}\n'
        'providers:\n'
        '- {name: cn1, aggregates: [wn], traits: [HW_CPU_X86_AVX3]}\n'
        '- {name: cn2, aggregates: [wn], traits: [HW_CPU_X86_AVX3]}\n'
    )
    message = problem_of(path).split('; ')
    assert [
        text.partition(':')[0] for text in message if ' (line ' in text
    ] == [
        'aggregate win, hosts (line 3)',
        'provider cn1, aggregates (line 6)',
        'provider cn1, traits (line 6)',
    ]


@cases(
    ('metadata', 'place'),
    {
        'for a mapping': (
            '    trait:CUSTOM_WIN:required\n',
            'aggregate win, metadata (line 4)',
        ),
        'for a key': (
            '    x: y\n    ? trait:CUSTOM_WIN:required\n',
            'aggregate win, metadata.trait:CUSTOM_WIN:required (line 6)',
        ),
    },
)
def test_a_colon_without_a_space_is_reported(write_cloud, metadata, place):
    path = write_cloud(f'aggregates:\n- name: win\n  metadata:\n{metadata}')
    message = problem_of(path)
    assert message.startswith(f'{place}: must be ')
    assert message.endswith(
        '; YAML requires a space after a colon, "trait:CUSTOM_WIN: required"'
    )


# Optional parts and short forms.


def test_the_version_alone_is_an_empty_cloud(load, tmp_path):
    path = tmp_path / 'cloud.yaml'
    assert load('') == Snapshot(origin=str(path))


def test_a_missing_uuid_is_derived_from_kind_and_name(load):
    """Literal, so that the same file gives the same uuids for ever."""
    cloud = load("""
        aggregates: [{name: a}]
        placement_aggregates: [{name: p}]
        providers: [{name: a}]
        flavors: [{name: a}]
        images: [{name: a}]
        """)
    assert cloud.aggregates[0].uuid == '6f2eeae8-ce6e-5ea3-956c-89a80377677f'
    assert cloud.providers[0].uuid == '02e3ba3d-8446-5228-ad86-22f8993df0a3'
    assert cloud.flavors[0].id == '3de78be9-cbb0-569c-9f91-8b8ef873fcd7'
    assert cloud.images[0].id == 'bd566c4f-50e4-5723-bc17-8b419a2865e4'
    [derived] = cloud.placement_aggregates
    assert derived == cloud_document.derived_uuid('aggregate', 'p')


@cases(
    'written',
    {
        'by name': 'rack',
        'by uuid': AGG,
        'by uuid in upper case': AGG.upper(),
        'by uuid without dashes': AGG.replace('-', ''),
    },
)
@pytest.mark.parametrize('uuid', [AGG, AGG.upper()])
@pytest.mark.parametrize('section', ['aggregates', 'placement_aggregates'])
def test_aggregates_can_be_named_in_any_form(load, section, uuid, written):
    """Placement compares uuids as text, so only one spelling may remain."""
    cloud = load(f"""
        {section}: [{{name: rack, uuid: {uuid}}}]
        providers: [{{name: p, aggregates: ['{written}']}}]
        """)
    assert cloud.providers[0].aggregates == {AGG}
    assert [a.uuid for a in cloud.index] + list(
        cloud.placement_aggregates
    ) == [AGG]


MIRRORED = """
mirror_host_aggregates: {mirror}
aggregates:
- {{name: one, uuid: 11111111-1111-4111-8111-111111111111, hosts: [cn1, svc]}}
- {{name: two, uuid: 22222222-2222-4222-8222-222222222222, hosts: [cn1]}}
providers:
- name: cn1
  aggregates: [33333333-3333-4333-8333-333333333333]
  children: [{{name: numa1}}]
- {{name: node2, host: svc}}
- {{name: cn3}}
"""


def test_host_aggregates_are_mirrored_onto_the_roots_of_their_hosts(load):
    cloud = load(MIRRORED.format(mirror='true'))
    assert {p.name: sorted(p.aggregates) for p in cloud.providers} == {
        'cn1': [
            '11111111-1111-4111-8111-111111111111',
            '22222222-2222-4222-8222-222222222222',
            '33333333-3333-4333-8333-333333333333',
        ],
        'numa1': [],
        'node2': ['11111111-1111-4111-8111-111111111111'],
        'cn3': [],
    }


def test_without_mirroring_providers_have_only_their_own_aggregates(load):
    cloud = load(MIRRORED.format(mirror='false'))
    assert {p.name: sorted(p.aggregates) for p in cloud.providers} == {
        'cn1': ['33333333-3333-4333-8333-333333333333'],
        'numa1': [],
        'node2': [],
        'cn3': [],
    }


def test_mirroring_is_the_default(load):
    text = MIRRORED.format(mirror='true')
    without = text.replace('mirror_host_aggregates: true', '')
    assert load(without) == load(text)


def test_a_root_is_a_compute_node_unless_it_shares_or_is_marked(load):
    cloud = load("""
        providers:
        - name: plain
          children: [{name: child}]
        - {name: node, host: service}
        - {name: none, host: null}
        - {name: shared, traits: [MISC_SHARES_VIA_AGGREGATE]}
        - {name: both, host: both, traits: [MISC_SHARES_VIA_AGGREGATE]}
        """)
    assert {p.name: p.host for p in cloud.providers} == {
        'plain': 'plain',
        'child': None,
        'node': 'service',
        'none': None,
        'shared': None,
        'both': 'both',
    }


def test_parents_come_before_their_children(load):
    cloud = load("""
        providers:
        - name: root
          children:
          - name: child
            children: [{name: grandchild}]
          - name: second
        """)
    root, child, grandchild, second = cloud.providers
    assert [p.name for p in cloud.providers] == [
        'root',
        'child',
        'grandchild',
        'second',
    ]
    assert root.parent is None
    assert child.parent == second.parent == root.uuid
    assert grandchild.parent == child.uuid


def test_an_inventory_can_be_only_its_total(load):
    [provider] = load("""
        providers:
        - name: a
          inventories:
            VCPU: 4
            MEMORY_MB: {total: 8, reserved: 1, allocation_ratio: 1.5}
        """).providers
    assert provider.inventories == {
        'VCPU': Inventory(
            total=4,
            reserved=0,
            min_unit=1,
            max_unit=2147483647,
            step_size=1,
            allocation_ratio=1.0,
        ),
        'MEMORY_MB': Inventory(total=8, reserved=1, allocation_ratio=1.5),
    }


def test_an_allocation_ratio_of_zero_is_read(load):
    """Placement and nova-compute accept it, so a saved cloud may have it."""
    [provider] = load("""
        providers:
        - name: a
          inventories: {VCPU: {total: 4, allocation_ratio: 0.0}}
        """).providers
    assert provider.inventories['VCPU'].capacity == 0


def test_a_usage_of_zero_is_no_usage(load):
    [provider] = load("""
        providers:
        - name: a
          inventories: {VCPU: 4}
          usages: {VCPU: 0, VGPU: 0}
        """).providers
    assert provider.usages == {}


def test_values_of_metadata_and_specs_become_the_text_nova_has(load):
    cloud = load("""
        aggregates:
        - {name: a, metadata: {a: true, b: no, c: 3, d: 1.5, e: 'no'}}
        """)
    assert cloud.aggregates[0].metadata == {
        'a': 'true',
        'b': 'false',
        'c': '3',
        'd': '1.5',
        'e': 'no',
    }


def test_a_mapping_can_include_another_with_a_merge_key(load):
    cloud = load("""
        flavors:
        - &small {name: small, vcpus: 1, ram: 512}
        - {<<: *small, name: smaller, ram: 256}
        """)
    assert [(f.name, f.vcpus, f.ram) for f in cloud.flavors] == [
        ('small', 1, 512),
        ('smaller', 1, 256),
    ]


def test_images_with_different_ids_can_have_one_name(load):
    cloud = load('images: [{name: a, id: x}, {name: a, id: y}, {name: a}]')
    assert [image.name for image in cloud.images] == ['a', 'a', 'a']


def test_settings_are_kept_by_group_and_option(load):
    cloud = load("""
        settings:
          scheduler: {max_placement_results: 5}
          isolate_aggregates: {request_filters: [isolate_tenants]}
        """)
    assert cloud.settings == {
        ('scheduler', 'max_placement_results'): 5,
        ('isolate_aggregates', 'request_filters'): ['isolate_tenants'],
    }


def test_a_dollar_in_a_setting_is_not_substituted(load):
    cloud = load("settings: {isolate_aggregates: {request_filters: ['$A']}}")
    conf = cfg.ConfigOpts()
    tools_options.register_own_opts(conf)
    clouds.apply_settings(conf, cloud)
    assert conf.isolate_aggregates.request_filters == ['$A']


# What is written.


def written_and_read(snapshot, directory):
    path = pathlib.Path(directory) / 'saved.yaml'
    cloud_file.save(snapshot, path)
    return cloud_file.load(path)


@pytest.mark.parametrize('path', EXAMPLES, ids=lambda path: path.stem)
def test_an_example_that_is_saved_reads_back_the_same(path, tmp_path):
    original = cloud_file.load(path)
    again = written_and_read(original, tmp_path)
    assert dataclasses.replace(again, origin=original.origin) == original


def test_an_incomplete_mirror_does_not_change(tmp_path):
    """Missing memberships of a live cloud must be preserved."""
    original = Snapshot(
        'x',
        aggregates=(Aggregate(AGG, 'rack', hosts=frozenset(['cn1'])),),
        providers=(Provider(AGG, 'cn1', host='cn1'),),
    )
    again = written_and_read(original, tmp_path)
    assert again.providers == original.providers


@cases(
    'text',
    {
        'like a truth value': 'yes',
        'like a number': '1.10',
        'like nothing': 'null',
        'like YAML': '{a: [b',
        'blanks': ' a  b ',
        'breaks': 'a\tb\r\nc\n',
        'rarer breaks': 'a\x85b\u2028c\u2029',
        'not printable': '\ufeffa\x00\x07',
        'beyond ASCII': 'Rechner für Größeres 🖥',
    },
)
def test_any_text_is_written_so_that_it_reads_back_the_same(tmp_path, text):
    original = Snapshot('x', images=(Image('i', 'i', {text: text}),))
    again = written_and_read(original, tmp_path)
    assert again.images == original.images


def test_text_beyond_ascii_stays_readable(tmp_path):
    path = tmp_path / 'cloud.yaml'
    cloud_file.save(Snapshot('x', images=(Image('Größe 🖥', 'i'),)), path)
    assert '- name: Größe 🖥\n' in path.read_text('utf-8')


# Placement takes any text as a name; Nova and Glance do as well.
TEXT = st.text(st.characters(exclude_categories=['Cs']), max_size=8)
NAMES = TEXT.filter(len)
UUIDS = st.uuids().map(str)
TRAITS = st.sampled_from(
    ['CUSTOM_A', 'HW_CPU_X86_VMX', 'MISC_SHARES_VIA_AGGREGATE']
)
CLASSES = st.sampled_from(['VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_X'])
UNITS = st.integers(1, MAX_INT)
TEXTS = st.dictionaries(NAMES, TEXT, max_size=3)
INVENTORIES = st.builds(
    Inventory,
    total=UNITS,
    reserved=st.integers(0, MAX_INT),
    min_unit=UNITS,
    max_unit=UNITS,
    step_size=UNITS,
    allocation_ratio=st.floats(0.001, 1e6),
)


def distinct(things, *keys, max_size=3):
    """Return pairs of objects that differ in one attribute each."""
    return st.lists(
        things,
        max_size=max_size,
        unique_by=tuple(
            lambda thing, key=key: getattr(thing, key) for key in keys
        ),
    ).map(tuple)


@st.composite
def provider_trees(draw):
    """Return providers, parents before their children."""
    names = draw(st.lists(NAMES, unique=True, max_size=5))
    uuids = draw(
        st.lists(UUIDS, unique=True, min_size=len(names), max_size=len(names))
    )
    trees = []
    # The ancestors that the next provider may have: depth first.
    path = []
    for name, uuid in zip(names, uuids, strict=True):
        inventories = draw(st.dictionaries(CLASSES, INVENTORIES, max_size=2))
        usages = {rc: draw(UNITS) for rc in inventories if draw(st.booleans())}
        del path[draw(st.integers(0, len(path))) :]
        parent = path[-1] if path else None
        path.append(uuid)
        trees.append(
            Provider(
                uuid=uuid,
                name=name,
                parent=parent,
                host=None if parent else draw(st.none() | NAMES),
                inventories=inventories,
                usages=usages,
                traits=draw(st.frozensets(TRAITS)),
                aggregates=draw(st.frozensets(UUIDS, max_size=2)),
            )
        )
    return tuple(trees)


PORTS = st.builds(
    Port,
    id=NAMES,
    network=st.just(''),
    remote_managed=st.booleans(),
    accelerator=st.booleans(),
    groups=st.lists(
        st.builds(
            ResourceGroup,
            id=TEXT,
            resources=st.dictionaries(CLASSES, UNITS, max_size=2),
            required_traits=st.frozensets(TRAITS),
        ),
        max_size=2,
    ).map(tuple),
    same_subtree=st.frozensets(TEXT, max_size=2),
    device_profile=st.none() | NAMES,
    segments=st.lists(UUIDS, max_size=2).map(tuple),
)


@st.composite
def servers(draw, present, images, flavors):
    """Return servers, some with a flavor that is still the same; or None."""
    if draw(st.booleans()):
        return None
    same = list(map(cloud_document.booted, present))
    others = flavors.map(cloud_document.booted)
    placed = draw(
        distinct(
            st.builds(
                Server,
                id=NAMES,
                name=TEXT,
                project_id=TEXT,
                status=TEXT,
                host=st.none() | NAMES,
                flavor=st.none() | others | st.sampled_from(same)
                if same
                else others,
                image_id=st.none() | TEXT,
                scheduler_hints=st.dictionaries(
                    TEXT, st.lists(TEXT, max_size=2).map(tuple), max_size=2
                ),
                image_properties=st.none() | TEXTS,
                availability_zone=st.none() | TEXT,
                ports=st.none() | st.lists(PORTS, max_size=2).map(tuple),
                has_shares=st.none() | st.booleans(),
            ),
            'id',
        )
    )
    hints_known = not placed or draw(st.booleans())
    if not hints_known:
        placed = tuple(
            dataclasses.replace(
                one,
                scheduler_hints={},
                availability_zone=None,
                zone_known=False,
            )
            for one in placed
        )
    return Servers(placed, {one.id: one for one in images}, hints_known)


@st.composite
def snapshots(draw):
    """Return clouds of every kind a cloud file can describe."""
    aggregates = draw(
        distinct(
            st.builds(
                Aggregate,
                uuid=UUIDS,
                name=NAMES.map('host {}'.format),
                metadata=TEXTS,
                hosts=st.frozensets(NAMES, max_size=3),
                id=st.none() | st.integers(1),
                availability_zone=st.none() | TEXT,
            ),
            'uuid',
            'name',
        )
    )
    sizes = st.integers(0, 10**9)
    flavors = st.builds(
        Flavor,
        name=NAMES,
        id=TEXT,
        vcpus=sizes,
        ram=sizes,
        disk=sizes,
        ephemeral=sizes,
        is_public=st.booleans(),
        projects=st.frozensets(TEXT, max_size=2),
        swap=sizes,
        extra_specs=TEXTS,
    )
    images = st.builds(
        Image,
        name=TEXT,
        id=NAMES,
        properties=TEXTS,
        owner=st.none() | TEXT,
        visibility=st.none() | TEXT,
    )
    some_flavors = draw(distinct(flavors, 'name', 'id'))
    some_images = draw(distinct(images, 'id'))
    return Snapshot(
        origin='drawn',
        aggregates=aggregates,
        providers=draw(provider_trees()),
        flavors=some_flavors,
        images=some_images,
        servers=draw(servers(some_flavors, some_images, flavors)),
        settings=draw(
            st.fixed_dictionaries(
                {},
                optional={
                    ('scheduler', 'max_placement_results'): st.integers(1),
                    ('isolate_aggregates', 'request_filters'): st.lists(NAMES),
                },
            )
        ),
        placement_aggregates=dict(
            draw(
                st.lists(
                    st.tuples(UUIDS, NAMES.map('placement {}'.format)),
                    max_size=2,
                    unique_by=(lambda pair: pair[0], lambda pair: pair[1]),
                )
            )
        ),
        traits=draw(st.frozensets(TRAITS)),
        resource_classes=draw(st.frozensets(CLASSES)),
    )


@examples(40)
@given(snapshots())
def test_any_cloud_that_is_saved_reads_back_the_same(snapshot):
    with tempfile.TemporaryDirectory() as directory:
        again = written_and_read(snapshot, directory)
    assert dataclasses.replace(again, origin='drawn') == snapshot


def test_a_failed_save_leaves_only_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / 'cloud.yaml'
    cloud_file.save(Snapshot('x'), path)
    old = path.read_text()

    def fail_halfway(document, stream, **options):
        stream.write('version: 1\nflavors: [')
        raise KeyboardInterrupt

    monkeypatch.setattr(yaml, 'dump', fail_halfway)
    with pytest.raises(KeyboardInterrupt):
        cloud_file.save(Snapshot('x'), path)
    assert path.read_text() == old
    assert list(tmp_path.iterdir()) == [path]


def test_a_save_replaces_an_existing_file_at_once(tmp_path):
    """A process that has opened the old file continues to read it."""
    path = tmp_path / 'cloud.yaml'
    old_one = Snapshot('x', images=(Image('old', 'i'),))
    cloud_file.save(old_one, path)
    with path.open() as old:
        cloud_file.save(Snapshot('x'), path)
        assert 'name: old' in old.read()
    assert cloud_file.load(path) == Snapshot(str(path))
    assert list(tmp_path.iterdir()) == [path]


@cases(
    ('target', 'problem'),
    {
        'missing directory': (
            'missing/cloud.yaml',
            'cannot be written: No such file or directory',
        ),
        'a file for a directory': (
            'file/cloud.yaml',
            'cannot be written: Not a directory',
        ),
        'a directory for the file': (
            'directory',
            'cannot be written: Is a directory',
        ),
    },
)
def test_a_file_that_cannot_be_written_is_an_error_and_leaves_nothing(
    tmp_path, target, problem
):
    (tmp_path / 'file').touch()
    (tmp_path / 'directory').mkdir()
    path = tmp_path / target
    with pytest.raises(tools_errors.CloudFileError) as caught:
        cloud_file.save(Snapshot('x'), path)
    assert str(caught.value) == f'{path} {problem}.'
    remnants = sorted(entry.name for entry in tmp_path.rglob('*'))
    assert remnants == ['directory', 'file']


def test_a_directory_without_permission_is_an_error(tmp_path):
    tmp_path.chmod(0o500)
    path = tmp_path / 'cloud.yaml'
    with (
        unprivileged(),
        pytest.raises(tools_errors.CloudFileError) as caught,
    ):
        cloud_file.save(Snapshot('x'), path)
    assert str(caught.value) == (
        f'{path} cannot be written: Permission denied.'
    )


def test_a_misspelt_host_of_an_aggregate_is_a_mistake(write_cloud):
    path = write_cloud(
        'aggregates: [{name: win, hosts: [cn-1]}]\nproviders: [{name: cn1}]\n'
    )
    with pytest.raises(tools_errors.CloudFileError) as caught:
        cloud_file.load(path)
    assert str(caught.value) == (
        f"Cloud file {path}: aggregate win, hosts (line 2): names 'cn-1', "
        'which no provider has (did you mean cn1?); to allow this, set '
        'mirror_host_aggregates: false.'
    )


def test_a_value_and_its_text_are_not_confused(write_cloud):
    path = write_cloud(
        'flavors: [{name: a, extra_specs: {a: "1", b: "[1]"}}]\n'
        'aggregates: [{name: a, metadata: {a: "1", b: [1]}}]\n'
    )
    with pytest.raises(tools_errors.CloudFileError) as caught:
        cloud_file.load(path)
    assert 'aggregate a, metadata.b (line 3): must be' in str(caught.value)


# Loaders


def loaded(load, text):
    """Return the document, or why there is none."""
    try:
        return load(text)
    except ValueError as exc:
        return type(exc)


def slowly(text):
    return checked_yaml.parse(text)[1]


@pytest.mark.skipif(
    not yaml.__with_libyaml__, reason='PyYAML was built without libyaml'
)
def test_both_loaders_read_the_same_from_texts_with_typing_errors():
    rng = random.Random(1)
    texts = [
        path.read_text('utf-8')[:1500]
        for path in sorted(pathlib.Path('examples').glob('*.yaml'))
    ]
    texts += ['{"a": {"b": [1, 2.5, true, null, "\\u00e9\\n"], "c": {}}}'] * 9
    characters = ' \n\t:-[]{}#&*!|>%@`"\',?<=~0ab\x85\u2028\ufeff\x07é'
    accepted = 0
    for _ in range(300):
        text = rng.choice(texts)
        place = rng.randrange(len(text))
        skipped = place + rng.randrange(3)
        text = text[:place] + rng.choice(characters) + text[skipped:]
        quick = loaded(quick_yaml.load, text)
        slow = loaded(slowly, text)
        # libyaml also accepts some texts of later versions of YAML.
        if not isinstance(quick, type) and not isinstance(slow, type):
            accepted += 1
            assert quick == slow, text
    assert accepted > 50


@pytest.mark.parametrize(
    'text',
    [
        'a: [1, 0x1f, 1_0, 010, 1.5, .5, 1e3, 1.0e+3, .inf]',
        'a: [yes, "yes", No, ~, null, "", 2026-01-01]\nb:\nc: ""',
        'a: &one {b: [1, x]}\nc: *one\nd: &two x\ne: [*two, *two]',
        '{"a": {"b": [true, "\\u00e9", -1]}, "c": []}',
        '- |\n  line\n  line\n- >\n  folded\n  text\n- a: {}',
        '--- {a: 1}\n...\n',
        'only text',
        '{"a": 1e3, "b": 1.5, "c": 1E3, "d": NaN, "e": [Infinity, -0.0, 10]}',
        '{"a": "\\u2028 \\ufeff \\/ \\t", "b": "caf\u00e9", "c": 1.0}',
    ],
)
def test_both_loaders_read_the_same_from_what_is_valid(text):
    assert repr(quick_yaml.load(text)) == repr(slowly(text))


@pytest.mark.parametrize(
    'text',
    [
        *(
            '',
            '# nothing',
            '--- 1\n--- 2',
            '{a: 1, a: 2}',
            '{"a": {"b": 1, "b": 1}}',
            '{1: a}',
            '{[]: a}',
        ),
        *('{yes: a}', '{? : a}', '{a: &x 1, b: &x 2}', 'a: *x', '&x [*x]'),
        *('{a: !!str 1}', '&x {a: 1}: b', 'a: {<<: {b: 1}}', 'a: \ufeff b'),
        *('[' * 100_000, 'a: [', 'a: @'),
    ],
)
def test_what_is_unusual_is_not_read_quickly(text):
    with pytest.raises(quick_yaml.Doubtful):
        quick_yaml.load(text)


def test_equal_parts_are_checked_for_each_of_their_types(write_cloud):
    path = write_cloud(
        'providers:\n'
        '- {name: a, inventories: {VCPU: 1}}\n'
        '- {name: b, inventories: {VCPU: 1}}\n'
        '- {name: c, inventories: {VCPU: true}}\n'
        "- {name: d, inventories: {VCPU: '1'}}\n"
        '- {name: e, inventories: {VCPU: 1.0}}\n'
        '- {name: f, inventories: {VCPU: true}}\n'
    )
    with pytest.raises(tools_errors.CloudFileError) as caught:
        cloud_file.load(path)
    found = re.findall('provider (.), .*? not (.*?)[;.]', str(caught.value))
    assert [name for name, _ in found] == ['c', 'd', 'e', 'f']
