# SPDX-License-Identifier: Apache-2.0
"""Traits that Nova derives from other settings open aggregates, too."""

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request.properties import DeclaredProperties
from isolate_aggregates.testing import reasons_for
from isolate_aggregates_tools.request import Request


def test_a_trait_implied_by_a_setting_opens():
    secure = Aggregate(
        'uuid-secure',
        'secure',
        {'trait:COMPUTE_SECURITY_UEFI_SECURE_BOOT': 'required'},
    )
    request = Request(Flavor('f', extra_specs={'os:secure_boot': 'required'}))
    filters = {'isolate_aggregates': IsolateAggregates()}
    assert reasons_for(Request(Flavor('f')), [secure], filters)
    assert not reasons_for(request, [secure], filters)


def test_hidden_properties_still_imply_traits():
    image = Image('i', properties={'hw_tpm_version': '2.0'})
    request = Request(Flavor('f'), image)
    view = request.declaring(DeclaredProperties())
    assert view.image_properties == {}
    assert 'COMPUTE_SECURITY_TPM_2_0' in request.required_traits
    assert view.required_traits == request.required_traits
    assert view.operator_traits == request.operator_traits == frozenset()
