# SPDX-License-Identifier: Apache-2.0
"""Many names in few words."""

import itertools
import re

from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from isolate_aggregates_tools import ranges


@cases(
    ('names', 'said'),
    {
        'one': (['cn1'], 'cn1'),
        'without numbers': (['b', 'a'], 'a, b'),
        'zeros in front': (
            [f'cn-{n:04}' for n in range(1, 51)],
            'cn-[0001-0050]',
        ),
        'in natural order, with gaps': (
            [f'cn{n}' for n in (10, 8, 9, 12, 1)],
            'cn[1,8-10,12]',
        ),
        'more digits': (['cn-09', 'cn-10'], 'cn-[09-10]'),
        'as written': (['n1', 'n01', 'n2'], 'n[01,1-2]'),
        'two numbers, and one that is the same': (
            [f'r{r}-n{n:02}.dc1' for r in (1, 2) for n in (1, 2, 3)],
            'r[1-2]-n[01-03].dc1',
        ),
        'no more than there are': (
            ['r1-n1', 'r1-n2', 'r2-n1'],
            'r1-n[1-2], r2-n1',
        ),
        'two kinds': (['gpu-1', 'win-1'], 'gpu-1, win-1'),
        'too many': (
            [f'cn{n}' for n in range(0, 200, 2)],
            'cn[0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38] '
            'and 80 more',
        ),
        'too long': ([70 * 'a', 70 * 'b'], f'{70 * "a"} and 1 more'),
    },
)
def test_runs_of_numbers_become_ranges(names, said):
    assert ranges.folded(names) == said


def unfolded(said):
    """Return the names that a text abbreviates."""
    for name in said.split(', '):
        parts = []
        for part in re.split(r'(\[.*?\])', name):
            if not part.startswith('['):
                parts.append([part])
                continue
            parts.append(
                [
                    str(number).zfill(len(first))
                    for run in part[1:-1].split(',')
                    for first, _, last in [run.partition('-')]
                    for number in range(int(first), int(last or first) + 1)
                ]
            )
        yield from map(''.join, itertools.product(*parts))


names = st.from_regex(r'[ab]{0,2}[0-9]{1,3}([-.]n[0-9]{1,2})?', fullmatch=True)


@given(st.sets(names, min_size=1, max_size=30))
def test_no_name_is_lost_or_made_up(some):
    results = list(unfolded(ranges.folded(some, longest=None)))
    assert sorted(results) == sorted(some)


@cases(
    ('texts', 'said'),
    {
        'names': (
            [
                f'in aggregate lock-{n:02}, locked by trait CUSTOM_{n}, which '
                'flavor m1 does not require'
                for n in range(1, 51)
            ],
            (
                'in aggregate lock-[01-50], locked by trait CUSTOM_[1-50], '
                'which flavor m1 does not require (respectively)',
            ),
        ),
        'names that belong to others': (
            ['in a, locked by X', 'in b, locked by Y', 'in c, locked by X'],
            ('in a, c, locked by X', 'in b, locked by Y'),
        ),
        'a few pairs': (
            ['in a, locked by X', 'in b, locked by Y'],
            ('in a, locked by X', 'in b, locked by Y'),
        ),
        'pairs in no order': (
            [f'in a{n}, locked by X{9 - n}' for n in range(5)],
            (
                'in a0, locked by X9',
                'in a1, locked by X8',
                'in a2, locked by X7',
                '2 more like these',
            ),
        ),
        'a name that is repeated': (
            ['h1: add h1', 'h2: add h2'],
            ('h[1-2]: add h[1-2]',),
        ),
        'amounts': (
            [
                f'VCPU: requested 4, free {16 - used} (16 total x 1.0 - '
                f'{used} used)'
                for used in (16, 13, 14)
            ],
            (
                'VCPU: requested 4, free 0 to 3 (16 total x 1.0 - 13 to 16 '
                'used)',
            ),
        ),
        'names without numbers': (
            ['in aggregate gold: full', 'in aggregate tin: full'],
            ('in aggregate gold, tin: full',),
        ),
        'not alike': (['a', 'a', 'b c'], ('a', 'b c')),
        'too many that are not alike': (
            ['a', 'b c', 'd e f', 'g h i j', 'k l m n o'],
            ('a', 'b c', 'd e f', '2 more like these'),
        ),
    },
)
def test_texts_that_differ_in_names_and_numbers_are_one(texts, said):
    assert ranges.alike(texts) == said
