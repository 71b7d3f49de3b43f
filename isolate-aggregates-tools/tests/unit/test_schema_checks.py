# SPDX-License-Identifier: Apache-2.0
"""The quick check of documents finds valid only what jsonschema does."""

import copy
import json
import math
import pathlib
import random

from cases import cases
import jsonschema

from isolate_aggregates_tools.cloud.file import quick_yaml
from isolate_aggregates_tools.cloud.file.schema_checks import Checks
from isolate_aggregates_tools.cloud.file.violations import Checker

ROOT = pathlib.Path(__file__).parents[3]
PACKAGE = ROOT / 'isolate-aggregates-tools' / 'isolate_aggregates_tools'
CLOUD = quick_yaml.load(
    (PACKAGE / 'cloud' / 'file' / 'schema.yaml').read_text('utf-8')
)
EXPECTATIONS = json.loads(
    (PACKAGE / 'expectations' / 'schema.json').read_text('utf-8')
)
NAME = 'aaaaaaaa-aaaa-4aaa-aaaa-aaaaaaaaaaaa'

# Each kind of object and of value that a file may have.
FULL_CLOUD = {
    'version': 1,
    'settings': {'isolate_aggregates': {'filters': 'traits'}},
    'mirror_host_aggregates': True,
    'aggregates': [
        {
            **{'name': 'a', 'uuid': NAME, 'id': 1, 'availability_zone': None},
            **{'metadata': {'x': 'y', 'z': 1.5}, 'hosts': ['h1', 'h2']},
        }
    ],
    'placement_aggregates': [{'name': 'p', 'uuid': NAME}],
    'traits': ['CUSTOM_A', 'CUSTOM_B'],
    'domains': [{'id': 'd', 'projects': ['p1', 'p2']}],
    'keystone': {
        'domains': [{'id': 'd', 'name': 'one'}],
        'projects': [{'id': 'p', 'name': 'two', 'domain': 'd'}],
    },
    'providers': [
        {
            **{'name': 'h1', 'host': 'h1', 'uuid': NAME, 'aggregates': ['a']},
            'inventories': {
                'VCPU': 8,
                'MEMORY_MB': {'total': 10, 'allocation_ratio': 1.5},
            },
            **{'usages': {'VCPU': 0}, 'traits': ['CUSTOM_A']},
            'children': [{'name': 'c', 'children': [{'name': 'cc'}]}],
        }
    ],
    'flavors': [
        {
            **{'name': 'f', 'id': 3, 'vcpus': 1, 'is_public': False},
            **{'extra_specs': {'k': True}, 'projects': ['p']},
        }
    ],
    'images': [{'name': 'i', 'owner': None, 'properties': {'k': 'v'}}],
    'reservations': {
        'read_at': '2026-01-01',
        'records': [{'flavor': 'f', 'description': ''}, {'flavor': {}}],
    },
    'servers': [
        {
            **{'id': 's', 'project': 'p', 'flavor': {'name': 'own'}},
            **{'image_properties': None, 'scheduler_hints': {'a': ['b']}},
            'ports': [{'id': 'x', 'groups': [{'id': 'g', 'resources': {}}]}],
        },
        {'id': 't', 'project': 'p', 'flavor': None, 'image_properties': {}},
    ],
    'server_groups': [{'id': 'g', 'policy': 'affinity', 'members': ['s']}],
    'compute_services': [{'host': 'h1', 'state': 'up', 'status': 'disabled'}],
}
FULL_CLOUD['reservations']['records'][1]['flavor'] = {'name': 'g'}

FULL_EXPECTATIONS = {
    'version': 1,
    'expectations': [
        {'name': 'one', 'flavor': 'f', 'only': {'host': ['h*', 'i']}},
        {'name': 'two', 'flavor': ['f', 'g'], 'never': {'lock': 'x'}},
        {'name': 'three', 'flavor': 'f', 'min_hosts': 3},
        {'name': 'four', 'survives': {'host': 'h'}, 'failures': 1},
    ],
}

# What takes the place of values and keys.
VALUES = (
    *(None, True, False, 0, 1, -1, 1.0, 2.5, math.inf, math.nan, 2**31),
    *('', 'x', 'y' * 201, 'z' * 256, 'version', NAME, f'{NAME}\n', '1'),
    *([], ['a'], ['a', 'a'], [1, 1], [{}, {}], [None], [['a'], ['a']]),
    *({}, {'name': 'x'}, {'': 1}, {'total': 1}, {'k': None}, {'k': [1]}),
)
KEYS = ('x', '', 'name', 'k' * 256, 'flavor', 'only', 'survives', 'failures')


def plain(schema):
    """Return a validator without any check of this package."""
    base = jsonschema.Draft202012Validator
    types = base.TYPE_CHECKER.redefine_many(
        {
            'integer': lambda _, value: type(value) is int,
            'number': lambda _, value: (
                type(value) is int
                or (type(value) is float and math.isfinite(value))
            ),
        }
    )
    return jsonschema.validators.extend(base, type_checker=types)(schema)


def containers(value):
    """Yield a value and what it has, as far as it has something itself."""
    if isinstance(value, dict | list):
        yield value
        each = value.values() if isinstance(value, dict) else value
        for one in each:
            yield from containers(one)


def alter(document, chance):
    """Replace, remove or add something somewhere."""
    place = chance.choice([*containers(document)])
    value = copy.deepcopy(chance.choice(VALUES))
    if isinstance(place, list):
        kind = chance.randrange(3)
        if kind == 0 or not place:
            place.append(value)
        elif kind == 1:
            place[chance.randrange(len(place))] = value
        else:
            place.append(copy.deepcopy(chance.choice(place)))
    elif place and chance.random() < 0.75:
        key = chance.choice([*place])
        if chance.random() < 0.3:
            del place[key]
        else:
            place[key] = value
    else:
        place[chance.choice(KEYS)] = value


BOTH = {
    'cloud': (CLOUD, FULL_CLOUD),
    'expectations': (EXPECTATIONS, FULL_EXPECTATIONS),
}


@cases(('schema', 'document'), BOTH)
def test_nothing_is_valid_that_jsonschema_rejects(schema, document):
    chance = random.Random(58)
    check = Checks(schema).of(schema)
    checker = Checker(schema)
    validator = plain(schema)
    found = {True: 0, False: 0}
    for _ in range(150):
        altered = copy.deepcopy(document)
        for _ in range(chance.choice([1, 1, 2])):
            alter(altered, chance)
        is_valid = validator.is_valid(altered)
        assert (checker.violations(altered) == []) == is_valid, altered
        assert is_valid or not check(altered), altered
        found[is_valid] += 1
    assert min(found.values()) > 5


@cases(('schema', 'document'), BOTH)
def test_a_violation_is_found_where_jsonschema_finds_it(schema, document):
    chance = random.Random(59)
    checker = Checker(schema)
    validator = plain(schema)
    for _ in range(40):
        altered = copy.deepcopy(document)
        alter(altered, chance)
        places = {
            tuple(error.absolute_path)
            for error in validator.iter_errors(altered)
            if error.validator != 'additionalProperties'
        }
        found = {problem.place for problem in checker.violations(altered)}
        assert places <= found, altered


@cases(
    'part',
    {
        'a keyword': {'type': 'array', 'contains': {'const': 1}},
        'alone': {'not': {}},
        'properties, and others': {
            'properties': {'a': {'type': 'null'}},
            'additionalProperties': {'type': 'array'},
        },
        'a condition that is not exact': {
            'if': {'contains': {'const': 1}},
            'then': {'const': 1},
            'else': {'type': 'array'},
        },
    },
)
def test_what_is_not_checked_is_never_found_valid(part):
    check = Checks({}).of(part)
    assert not any(map(check, ([], [1], {}, {'a': []}, 1, None)))


def test_a_whole_cloud_is_found_valid_without_jsonschema():
    assert Checks(CLOUD).of(CLOUD)(FULL_CLOUD)
