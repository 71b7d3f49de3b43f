# SPDX-License-Identifier: Apache-2.0
"""A ledger says that a key is not known, never that there is none."""

import pytest

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.tools import errors
from isolate_aggregates.tools.compute.servers import Server
from isolate_aggregates.tools.ledger.keys import Keys

LOCK = 'trait:CUSTOM_LICENSED'
WIN = Aggregate('win-uuid', 'win', {LOCK: 'required'}, frozenset({'h1'}))
KEYED = Flavor('keyed', extra_specs={LOCK: 'required'})
PLAIN = Flavor('plain')
IMAGES = {
    'windows': Image('windows', 'windows', properties={LOCK: 'required'}),
    'debian': Image('debian', 'debian'),
}


@pytest.fixture
def keys(conf):
    def image(number):
        try:
            return IMAGES[number]
        except KeyError:
            raise errors.NotFound('image', number, 'Glance') from None

    conf.set_override('enable_isolated_aggregate_filtering', True, 'scheduler')
    return Keys(conf, [WIN], image)


@pytest.mark.parametrize('told', [{}, None], ids=['2.98', 'before 2.98'])
@pytest.mark.parametrize(
    ('flavor', 'image', 'names'),
    [
        (PLAIN, 'windows', {LOCK}),
        (PLAIN, 'debian', set()),
        (PLAIN, 'gone', None),
        (PLAIN, None, None),
        (KEYED, 'gone', {LOCK}),
        (KEYED, None, {LOCK}),
        (None, 'windows', None),
    ],
)
def test_an_answer_without_properties_is_not_one_without_keys(
    keys, flavor, image, names, told
):
    server = Server(
        's', 's', 'p', 'ACTIVE', image_id=image, image_properties=told
    )
    assert keys.of(server, flavor) == names
