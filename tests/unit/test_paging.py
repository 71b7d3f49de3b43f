# SPDX-License-Identifier: Apache-2.0
"""Lists are read page after page, to their end."""

import pytest

from isolate_aggregates.rest import paging


def pages(*some, after_the_last=True):
    """Return what reads pages of letters, whose markers are the letters."""
    markers = [None, *(page[-1] for page in some if page)]
    by_marker = dict(zip(markers, [*some, ''], strict=False))
    last = markers[len(some) - 1]

    def read(marker):
        return by_marker[marker], after_the_last or marker != last

    return read


@pytest.mark.parametrize(
    'some',
    [[''], ['a'], ['ab', 'cd'], ['ab', 'c', 'de']],
    ids=['empty', 'one', 'full', 'short'],
)
def test_a_list_ends_with_an_empty_page(some):
    assert ''.join(paging.items(pages(*some), str)) == ''.join(some)


def test_a_list_ends_where_the_service_says_so():
    read = pages('ab', 'cd', after_the_last=False)
    asked = []
    found = paging.items(
        lambda marker: (asked.append(marker), read(marker))[1], str
    )
    assert (''.join(found), asked) == ('abcd', [None, 'b'])


def test_a_page_that_is_repeated_is_an_error():
    with pytest.raises(ValueError, match='after b ends with b again'):
        list(paging.items(lambda _: ('ab', True), str))


def test_a_list_is_read_again_while_markers_go():
    left = [KeyError('b'), KeyError('d')]

    def read():
        yield 'a'
        if left:
            raise left.pop()
        yield 'b'

    assert paging.whole(read, KeyError) == ['a', 'b']


def test_a_list_that_changes_all_the_time_is_an_error():
    def read():
        yield 'a'
        raise KeyError('a')

    with pytest.raises(KeyError):
        paging.whole(read, KeyError)
