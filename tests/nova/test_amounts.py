# SPDX-License-Identifier: Apache-2.0
"""An amount is a number for us exactly if it is one for Nova."""

from hypothesis import example, given
from hypothesis import strategies as st
from nova.objects import request_spec
import pytest
from thorough import examples

from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools.diagnosis.spelling import flavors
from isolate_aggregates_tools.testing import make_flavor

CLASS = 'CUSTOM_RESERVATION_1'

amounts = st.text('0123456789+-_ .\t\uff11²\u0663x', max_size=4) | st.text(
    max_size=3
)


@examples(500)
@given(amounts)
@example('+1')
@example(' 1')
@example('1_0')
@example('\uff11')
@example('²')
@example('-0')
@example('-1')
def test_amounts_are_those_of_nova(text):
    group = request_spec.RequestGroup()
    group.add_resource(CLASS, text)
    key = f'resources:{CLASS}'
    [spec] = xs.parse({key: text})
    assert spec.amount == group.resources.get(CLASS)
    group.strip_zeros()
    assert xs.reservation_classes({key: text}) == group.resources.keys()


@pytest.mark.parametrize('text', ['0', 'one', '-1', '1', '+1'])
def test_a_group_has_resources_if_nova_requests_some(text):
    group = request_spec.RequestGroup()
    group.add_resource(CLASS, text)
    group.strip_zeros()
    flavor = make_flavor(
        extra_specs={f'resources_A:{CLASS}': text, 'trait_A:X': 'required'}
    )
    without = flavors.groups_without_resources(flavor)
    assert bool(without) == (not group.resources)
