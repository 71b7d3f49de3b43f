# SPDX-License-Identifier: Apache-2.0
"""What commands make of the record of what a server was placed with."""

import json

from cases import cases
from hypothesis import given
from hypothesis import strategies as st
import pytest

from isolate_aggregates import exception
from isolate_aggregates.request import Image
from isolate_aggregates.request.placed import (
    Placed,
    decode,
    encode,
    hint,
    split,
    without_records,
)
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.compute.servers import (
    Server,
    all_hints,
    hints_from,
)
from isolate_aggregates_tools.server_images import ServerImages, image_id

texts = st.text(max_size=5)
records = st.builds(
    Placed,
    texts,
    st.lists(texts).map(tuple),
    st.none() | st.dictionaries(texts, st.none() | texts),
)


@given(records)
def test_a_record_is_read_as_it_was_written(record):
    assert decode('a', encode(record)) == record
    [text] = encode(record)
    assert decode('a', text) == record


GOOD = {'image': 'i', 'traits': [], 'properties': {}}


@pytest.mark.parametrize(
    'value',
    [
        'x',
        'null',
        '[]',
        '{}',
        json.dumps({**GOOD, 'more': 1}),
        json.dumps({**GOOD, 'image': None}),
        json.dumps({**GOOD, 'traits': [1]}),
        json.dumps({**GOOD, 'traits': None}),
        json.dumps({**GOOD, 'properties': {'a': 1}}),
        json.dumps({**GOOD, 'properties': []}),
        [],
        ['{}', '{}'],
    ],
)
def test_what_this_version_does_not_write_is_refused(value):
    with pytest.raises(exception.RequestRefused, match='server s was placed'):
        decode('s', value)
    # Commands say that they do not know.
    hints = {hint('s'): value}
    assert split('s', hints) == (hints, None)


def test_only_the_record_of_the_server_itself_counts():
    """Others can be named by the tenant who gives the hints."""
    record = Placed('i', ('A',))
    hints = {'group': ('g',), hint('s'): encode(record), hint('t'): ('x',)}
    given, found = split('s', hints)
    assert found == record
    assert {*given} == {'group', hint('t')}
    assert {*without_records(hints)} == {'group'}


def server(record=None, image='i', **fields):
    hints = {hint('s'): encode(record)} if record else {}
    return Server(
        's',
        'web',
        'p',
        'ACTIVE',
        image_id=image,
        **hints_from('s', {'group': 'g', **hints}),
        **fields,
    )


def test_a_cloud_file_has_the_record_as_nova_shows_it():
    record = Placed('i', ('A',), {'os': 'x', 'cut': None})
    one = server(record)
    assert one.placed == record
    assert one.scheduler_hints == {'group': ('g',)}
    again = Server('s', 'web', 'p', 'ACTIVE', image_id='i',
                   **hints_from('s', all_hints(one)))  # fmt: skip
    assert again == one


NOW = {'os': 'new', 'trait:NEW': 'required', 'r:1': 'new'}
GLANCE = {'i': Image('win', 'i', NOW)}


def images(number):
    try:
        return GLANCE[number]
    except KeyError:
        raise errors.NotFound('image', number, 'Glance') from None


@cases(
    ('record', 'image', 'properties', 'is_whole'),
    {
        'none': (None, 'i', NOW, True),
        'whole': (
            Placed('i', ('A',), {'os': 'x', 'cut': None, 'trait:B': 'no'}),
            'i',
            {'os': 'x', 'trait:A': 'required'},
            True,
        ),
        'only traits': (
            Placed('i', ('A',)),
            'i',
            {'os': 'new', 'r:1': 'new', 'trait:A': 'required'},
            True,
        ),
        'gone': (Placed('j', (), {'os': 'x'}), 'j', {'os': 'x'}, True),
        'gone, only traits': (
            Placed('j', ('A',)), 'j', {'trait:A': 'required'}, False),
        # After a refused rebuild Nova names the image of the volume.
        'volume': (Placed('', ('A',), {}), 'i', {'trait:A': 'required'}, True),
        'volume without one': (Placed('', (), {}), None, {}, True),
    },
)  # fmt: skip
def test_an_image_is_as_it_was_when_the_server_was_placed(
    record, image, properties, is_whole
):
    found = ServerImages(images).of(server(record, image))
    assert found.image.properties == properties
    assert found.is_whole is is_whole


def test_the_id_of_the_recorded_image_takes_precedence():
    assert image_id(server(Placed('j'), 'i')) == 'j'
    assert image_id(server(None, 'i')) == 'i'
    assert image_id(server(None, None)) == ''
