# SPDX-License-Identifier: Apache-2.0
"""Names of traits and resource classes are checked as Placement does."""

import pytest

from isolate_aggregates_tools.placement import names


@pytest.mark.parametrize('name', ['HW_CPU_X86_AVX2', 'CUSTOM_WINDOWS_1'])
def test_standard_and_custom_traits_are_valid(name):
    assert names.wrong_trait(name) is None


@pytest.mark.parametrize('name', ['VCPU', 'CUSTOM_FPGA'])
def test_standard_and_custom_resource_classes_are_valid(name):
    assert names.wrong_resource_class(name) is None


@pytest.mark.parametrize('name', ['WINDOWS', 'CUSTOM_windows', 'CUSTOM_A-B'])
def test_other_names_are_invalid(name):
    for wrong, kind in (
        (names.wrong_trait, 'trait'),
        (names.wrong_resource_class, 'resource class'),
    ):
        assert wrong(name).startswith(f'{name} is not a standard {kind}')


def test_a_similar_standard_name_is_suggested():
    assert '(did you mean VCPU?)' in names.wrong_resource_class('vcpu')
