# SPDX-License-Identifier: Apache-2.0
"""Variables of the environment that damage nova.conf are named."""

import test_misspellings

from isolate_aggregates.upgrade_check.environment import (
    damaging_variables,
)

read = test_misspellings.read

SCHEDULER = [
    '[filter_scheduler]',
    'available_filters = nova.scheduler.filters.all_filters',
    'enabled_filters = ComputeFilter',
]


def test_an_option_that_may_be_repeated_is_split_into_letters(
    read, monkeypatch
):
    variable = 'OS_FILTER_SCHEDULER__AVAILABLE_FILTERS'
    monkeypatch.setenv(variable, 'a.b')
    conf = read(SCHEDULER)
    assert conf.filter_scheduler.available_filters == ['a', '.', 'b']
    [problem] = damaging_variables(conf)
    assert problem == (
        f'oslo.config splits {variable} in the environment into letters, '
        'because [filter_scheduler] available_filters may be repeated; unset '
        'it, and set the option in a file'
    )


def test_an_empty_variable_takes_precedence_over_the_file(
    read, monkeypatch, tmp_path
):
    variable = 'OS_FILTER_SCHEDULER__ENABLED_FILTERS'
    monkeypatch.setenv(variable, '')
    conf = read(SCHEDULER)
    assert conf.filter_scheduler.enabled_filters == []
    [problem] = damaging_variables(conf)
    assert problem == (
        f'{variable} in the environment is empty, and takes precedence over '
        f'[filter_scheduler] enabled_filters of {tmp_path}/nova.conf; unset it'
    )


def test_other_variables_are_left_alone(read, monkeypatch):
    monkeypatch.setenv('OS_FILTER_SCHEDULER__ENABLED_FILTERS', 'ComputeFilter')
    # No file sets it.
    monkeypatch.setenv('OS_SCHEDULER__MAX_PLACEMENT_RESULTS', '')
    assert list(damaging_variables(read(SCHEDULER))) == []


def test_the_check_of_names_fails(read, monkeypatch):
    monkeypatch.setenv('OS_FILTER_SCHEDULER__ENABLED_FILTERS', '')
    assert 'enabled_filters of ' in test_misspellings.problems(read(SCHEDULER))
