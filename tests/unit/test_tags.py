# SPDX-License-Identifier: Apache-2.0
"""Metadata that looks like an isolation but cannot work."""

import pytest

from isolate_aggregates.aggregates import Aggregate, AggregateIndex, tags

NOT_EVERYWHERE = (
    "isolates, but with Nova's own filter only in some databases; the value "
    "must be 'required'"
)


@pytest.mark.parametrize(
    ('key', 'value', 'problem'),
    [
        ('trait:CUSTOM_A', 'Required', NOT_EVERYWHERE),
        ('trait:CUSTOM_A', 'required ', NOT_EVERYWHERE),
        ('trait:CUSTOM_A', 'requíred', NOT_EVERYWHERE),
        (
            'trait:CUSTOM_A',
            ' required',
            "isolates nothing; the value must be 'required'",
        ),
        (
            'trait:CUSTOM_A',
            ' REQUIRED',
            "isolates nothing; the value must be 'required'",
        ),
        (
            'Trait:CUSTOM_A',
            'required',
            "cannot be opened; the key must start with 'trait:'",
        ),
        (
            'trait:CUSTOM_A ',
            'required',
            'cannot be opened; a trait name may contain only uppercase '
            'letters, digits and _',
        ),
        (
            'trait:custom_a',
            'Required',
            'cannot be opened; a trait name may contain only uppercase '
            'letters, digits and _',
        ),
        (
            'trait:HW_NO_SUCH_THING',
            'required',
            'cannot be opened unless Placement knows the trait; it is not a '
            'standard trait of the os-traits installed here, and all other '
            'traits start with CUSTOM_',
        ),
    ],
)
def test_a_tag_without_effect_is_reported_with_its_aggregate(
    key, value, problem
):
    index = AggregateIndex([Aggregate('u', 'win', {key: value})])
    assert list(tags.problems(index)) == [
        f'aggregate win: {key}={value} {problem}'
    ]


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('trait:CUSTOM_A', 'required'),
        ('trait:HW_CPU_X86_AVX', 'required'),
        ('trait:CUSTOM_A', 'preferred'),
        ('availability_zone', 'required'),
        ('traits', 'required'),
    ],
)
def test_valid_tags_and_other_metadata_are_accepted(key, value):
    index = AggregateIndex([Aggregate('u', 'win', {key: value})])
    assert list(tags.problems(index)) == []


def test_every_tag_is_checked_and_in_the_order_of_the_keys():
    metadata = {
        'zone': ' required',
        **{f'trait:{name}': 'required' for name in 'edcba'},
        'availability_zone': 'required',
    }
    index = AggregateIndex(
        [Aggregate('u', 'win', metadata), Aggregate('v', 'lin')]
    )
    assert [text.split('=')[0] for text in tags.problems(index)] == [
        f'aggregate win: trait:{name}' for name in 'abcde'
    ]


@pytest.mark.parametrize(
    ('key', 'value', 'lock'),
    [
        ('trait:CUSTOM_A', 'required', True),
        ('Trait:a', 'Required ', True),
        ('trait:CUSTOM_A', 'preferred', False),
        ('availability_zone', 'required', False),
    ],
)
def test_a_lock_is_a_trait_that_is_required(key, value, lock):
    assert tags.is_lock(key, value) is lock


def test_traits_of_locks_are_valid_names_in_placement():
    aggregate = Aggregate(
        'u',
        'win',
        {
            'trait:CUSTOM_A': 'required',
            'trait:CUSTOM_B': 'Required ',
            'trait:CUSTOM_C': 'preferred',
            # Nothing can ask for these.
            'trait:custom_d': 'required',
            'Trait:CUSTOM_E': 'required',
            'CUSTOM_F': 'required',
            'CUSTOM_trait:': 'required',
        },
    )
    assert tags.required_traits(aggregate) == {'CUSTOM_A', 'CUSTOM_B'}
