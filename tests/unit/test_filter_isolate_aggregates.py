# SPDX-License-Identifier: Apache-2.0
"""The filter isolate_aggregates."""

from cases import cases
import pytest

from isolate_aggregates.aggregates import Aggregate, AggregateIndex
from isolate_aggregates.filters.isolate_aggregates import IsolateAggregates
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.testing import PlainRequest

OPEN = Aggregate('uuid-open', 'open', {'trait:HW_GPU': 'preferred'})
GPU = Aggregate('uuid-gpu', 'gpu', {'trait:HW_GPU': 'required'})
GPU2 = Aggregate('uuid-gpu2', 'gpu2', {'trait:HW_GPU': 'required'})
LAB = Aggregate('uuid-lab', 'lab', GPU.metadata | {'trait:HW_NIC': 'required'})
MISSPELT = Aggregate('uuid-misspelt', 'misspelt', {'Trait:HW_GPU': 'required'})


def asking(*traits, image=None):
    specs = {f'trait:{trait}': 'required' for trait in traits}
    return PlainRequest(Flavor('small', extra_specs=specs), image)


def forbidden(request, *aggregates):
    constraints = IsolateAggregates()(request, AggregateIndex(aggregates))
    return sorted(uuid for one in constraints for uuid in one.uuids)


@cases(
    ('traits', 'uuids'),
    {
        'asks for nothing': ([], ['uuid-gpu', 'uuid-lab']),
        'one of two is too few': (['HW_GPU'], ['uuid-lab']),
        'asks for both': (['HW_GPU', 'HW_NIC'], []),
        'case is not ignored': (['hw_gpu'], ['uuid-gpu', 'uuid-lab']),
    },
)
def test_an_aggregate_opens_only_to_requests_asking_for_all_its_traits(
    traits, uuids
):
    assert forbidden(asking(*traits), OPEN, GPU, LAB) == uuids


@pytest.mark.parametrize(
    'value',
    ['Required', 'REQUIRED  ', 'requíred', 'required\n', 'req\u200buired'],
)
def test_values_that_a_database_equates_with_required_lock(value):
    odd = Aggregate('uuid-odd', 'odd', {'trait:HW_GPU': value})
    assert forbidden(asking(), odd) == ['uuid-odd']
    assert forbidden(asking('HW_GPU'), odd) == []


@pytest.mark.parametrize('value', [' required', 'requires', 'no', ''])
def test_values_that_no_database_equates_with_required_do_not_lock(value):
    odd = Aggregate('uuid-odd', 'odd', {'trait:HW_GPU': value})
    assert forbidden(asking(), odd) == []


@pytest.mark.parametrize('key', ['trait:hw_gpu', 'trait:HW_GPU ', 'träit:X'])
def test_keys_that_a_database_equates_with_a_trait_stay_locked(key):
    odd = Aggregate('uuid-odd', 'odd', {key: 'required'})
    assert forbidden(asking('HW_GPU'), odd) == ['uuid-odd']


def test_a_trait_in_any_request_group_opens():
    request = PlainRequest(
        Flavor('f', extra_specs={'trait_GPU0:HW_GPU': 'required'})
    )
    assert forbidden(request, GPU) == []


IMAGE = Image('debian', properties={'trait:HW_GPU': 'required'})


@pytest.mark.parametrize(
    ('sources', 'closed'),
    [
        (('flavor', 'image'), []),
        (
            ('flavor',),
            ['locked by trait HW_GPU, which flavor small does not require'],
        ),
    ],
)
def test_a_trait_of_the_image_opens_if_images_count(sources, closed):
    constraints = IsolateAggregates(sources)(
        asking(image=IMAGE), AggregateIndex([GPU])
    )
    assert [
        part.cause.text for one in constraints for part in one.parts
    ] == closed


def test_without_closed_aggregates_there_is_no_constraint():
    assert list(IsolateAggregates()(asking(), AggregateIndex([OPEN]))) == []


def test_locks_are_sorted_by_name():
    tags = {f'trait:{name}': 'required' for name in 'DBACE'}
    locks = IsolateAggregates().locks(
        AggregateIndex([Aggregate('uuid', 'a', tags)])
    )
    assert [one.name for one in locks] == sorted(tags)


def test_a_forbidden_trait_opens_nothing():
    request = PlainRequest(
        Flavor('f', extra_specs={'trait:HW_GPU': 'forbidden'})
    )
    assert forbidden(request, GPU) == ['uuid-gpu']


def test_a_misspelt_prefix_locks_and_stays_locked():
    assert forbidden(asking('HW_GPU'), MISSPELT) == ['uuid-misspelt']


def test_aggregates_with_the_same_locks_share_one_constraint():
    [closed] = IsolateAggregates()(asking(), AggregateIndex([GPU, GPU2]))
    assert [one.aggregates for one in closed.parts] == [(GPU, GPU2)]


def test_the_reason_names_the_aggregate_and_the_traits_it_waits_for():
    image = Image('debian')
    [constraint] = IsolateAggregates()(
        asking('HW_GPU', image=image), AggregateIndex([LAB])
    )
    assert constraint.reason == (
        'aggregate lab: locked by trait HW_NIC, which neither flavor small '
        'nor image debian requires'
    )
    [constraint] = IsolateAggregates()(asking(), AggregateIndex([LAB]))
    assert constraint.reason == (
        'aggregate lab: locked by traits HW_GPU, HW_NIC, which flavor small '
        'does not require'
    )


def test_what_it_forbids_together_is_known_before_the_reasons_are():
    request, index = asking('HW_NIC'), AggregateIndex([OPEN, GPU, GPU2, LAB])
    [locked] = IsolateAggregates()(request, index)
    assert locked.groups == ((GPU, GPU2), (LAB,))
    assert [part.aggregates for part in locked.parts] == [*locked.groups]
