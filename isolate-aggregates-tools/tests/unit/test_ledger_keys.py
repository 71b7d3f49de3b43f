# SPDX-License-Identifier: Apache-2.0
"""A ledger says that a key is not known, never that there is none."""

import pytest

from isolate_aggregates.aggregates import Aggregate, Lock
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.ledger import keys as ledger_keys
from isolate_aggregates_tools.ledger.keys import Keys

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


def test_a_lock_is_seen_without_others_of_its_family():
    tags = {LOCK: 'required', 'trait:CUSTOM_GPU': 'required', 'r:1': 'x'}
    both = Aggregate('uuid', 'both', tags)
    lock = Lock('trait:', LOCK, (both,))
    alone = {LOCK: 'required', 'r:1': 'x'}
    assert ledger_keys._metadata(both, lock) == alone
    # A lock of several tags has no tag of its own.
    assert ledger_keys._metadata(both, Lock('r:', 'r:', (both,))) == tags


def test_a_limited_number_of_answers_is_remembered(keys, monkeypatch):
    monkeypatch.setattr(ledger_keys, '_MOST', 2)
    numbers = []
    for project in ('p', 'q', 'p', 'r'):
        keys.of(Server('s', 's', project, 'ACTIVE', image_id='debian'), PLAIN)
        numbers.append(len(keys._remembered))
    assert numbers == [1, 2, 2, 1]
