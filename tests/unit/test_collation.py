# SPDX-License-Identifier: Apache-2.0
"""Whatever some database of Nova may take for equal is equal."""

import pytest

from isolate_aggregates.aggregates import collation


@pytest.mark.parametrize(
    ('text', 'equal'),
    [
        ('required', True),
        ('REQUIRED', True),
        ('required  ', True),
        # Collations differ on these.
        ('requíred', True),
        ('requ\x00ired', True),
        (' required', False),
        ('required\t', True),
        ('require', False),
        ('', False),
    ],
)
def test_values_are_equal_despite_case_accents_and_trailing_spaces(
    text, equal
):
    assert collation.may_equal(text, 'required') is equal


@pytest.mark.parametrize(
    ('text', 'starts'),
    [
        ('trait:A', True),
        ('TRAIT:a', True),
        ('träit:A', True),
        ('tr\x00ait:A', True),
        # Only the start is compared.
        ('zones:ä', False),
        ('trait', False),
        ('x-trait:A', False),
    ],
)
def test_prefixes_are_equal_despite_case_and_accents(text, starts):
    assert collation.may_start_with(text, 'trait:') is starts
