# SPDX-License-Identifier: Apache-2.0
"""Our aggregate_instance_extra_specs passes the same hosts as Nova's filter.

The peer is the real ``AggregateInstanceExtraSpecsFilter.host_passes``.
"""

import itertools
import logging
import random
from types import SimpleNamespace

from nova import objects
from nova.scheduler.filters import (
    aggregate_instance_extra_specs,
    extra_specs_ops,
)
import pytest

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.aggregate_instance_extra_specs import (
    AggregateInstanceExtraSpecs,
    find,
)
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.required_metadata import (
    RequiredMetadata,
    required_metadata,
)
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.request import Request

THEIRS = aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter()
OURS = Pipeline({'ours': AggregateInstanceExtraSpecs()})
SCOPE = 'aggregate_instance_extra_specs:'

KEYS = ['ssd', 'gpus', 'a:b', '', 'availability_zone', 'group_policy']
SPECS = [
    *(SCOPE + key for key in KEYS),
    *(key for key in KEYS if ':' not in key),
    'hw:ssd', 'trait:A', ':ssd', 'Aggregate_instance_extra_specs:ssd',
]  # fmt: skip
OPERANDS = ['true', '4', '3.5', ' 3 ', 'many', 'a', '4 5', '', 'nan', '-1e3']
OPERATORS = [*sorted(extra_specs_ops.op_methods), '<or>', '', '>', '<', 's=']
LISTS = ['<or> 4 <or> true', '<or> a <or>', '<or> a b', '<all-in> t e', ' ']
VALUES = [
    *(' '.join(pair) for pair in itertools.product(OPERATORS, OPERANDS)),
    *OPERATORS, *OPERANDS, *LISTS,
]  # fmt: skip
# Mostly numbers; otherwise, hardly any request with a number would pass.
NUMBERS = ['4', '3', '5, 6', '1e1', ' 4 ', '-2']
TEXTS = [*NUMBERS, *NUMBERS, 'true', 'false,true', '', ',', 'many', '4, a']

CASES = 100_000


@pytest.fixture(autouse=True)
def _quiet():
    """Nova formats each host that it drops where DEBUG is on."""
    objects.register_all()
    logger = logging.getLogger('nova')
    level = logger.level
    logger.setLevel(logging.INFO)
    yield
    logger.setLevel(level)


def drawn(chance):
    """Return a flavor, some aggregates and the hosts of each kind."""
    extra_specs = {
        chance.choice(SPECS): chance.choice(VALUES)
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3]))
    }
    aggregates = [
        Aggregate(
            f'u{number}',
            f'a{number}',
            {
                key: chance.choice(TEXTS)
                for key in chance.sample(KEYS, chance.randrange(len(KEYS)))
            },
        )
        for number in range(5)
    ]
    hosts = itertools.chain.from_iterable(
        itertools.combinations(aggregates, most) for most in range(6)
    )
    return extra_specs, aggregates, list(hosts)


def state(host):
    """Return the host state for a host in some aggregates."""
    return SimpleNamespace(
        aggregates=[
            SimpleNamespace(metadata=dict(each.metadata)) for each in host
        ]
    )


def check_that_nova_fails(extra_specs, index):
    """Check that Nova fails on a value because of which we refuse."""
    failing = 0
    for required in required_metadata(extra_specs):
        values = (
            ['4', 'anything']
            if required.problem
            else [value for _, value in find(required, index).invalid]
        )
        spec = objects.RequestSpec(
            flavor=objects.Flavor(
                extra_specs={required.extra_spec: required.value}
            )
        )
        for value in values:
            aggregate = Aggregate('u', 'a', {required.key: value})
            with pytest.raises((ValueError, IndexError)):
                THEIRS.host_passes(state([aggregate]), spec)
            failing += 1
    assert failing


def compare(seed, cases):
    """Compare both filters, and return the number of each outcome."""
    chance = random.Random(seed)
    counts = {'pass': 0, 'drop': 0, 'fail': 0}
    while counts['pass'] + counts['drop'] < cases:
        extra_specs, aggregates, hosts = drawn(chance)
        request = Request(Flavor('f', extra_specs=extra_specs))
        destination = OURS.evaluate(request, AggregateIndex(aggregates))
        spec = objects.RequestSpec(
            flavor=objects.Flavor(extra_specs=extra_specs)
        )
        kinds = {one.constraint.cause.kind for one in destination.conclusions}
        if kinds & {'invalid-extra-spec', 'invalid-metadata'}:
            check_that_nova_fails(extra_specs, AggregateIndex(aggregates))
            counts['fail'] += len(hosts)
            continue
        for host in hosts:
            # Nova does not fail if we do not refuse.
            theirs = THEIRS.host_passes(state(host), spec)
            held = {each.uuid for each in host}
            ours = not destination.objections(held)
            assert ours is theirs, (extra_specs, host)
            counts['pass' if ours else 'drop'] += 1
    return counts


def test_hosts_pass_as_with_novas_filter():
    counts = compare(seed=19, cases=CASES)
    # Each outcome occurs often.
    assert min(counts.values()) > CASES // 20, counts


def fails(requirement, value):
    try:
        requirement.matches(value)
    except ValueError:
        return True
    return False


def test_each_operator_matches_as_in_nova():
    for value, text in itertools.product(VALUES, [*TEXTS, *OPERANDS]):
        for one in {part.strip() for part in text.split(',')}:
            wanted = RequiredMetadata('key', value, 'key')
            try:
                theirs = extra_specs_ops.match(one, value)
            except (ValueError, IndexError):
                assert fails(wanted, one), (one, value)
            else:
                assert wanted.matches(one) is theirs, (one, value)
                assert not wanted.problem
