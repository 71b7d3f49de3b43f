# SPDX-License-Identifier: Apache-2.0
"""Reads lists page after page, as the APIs of OpenStack have them.

See `Paginated collections
<https://docs.openstack.org/api-guide/compute/paginated_collections.html>`_ in
the Compute API guide.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
from typing import TypeVar

_T = TypeVar('_T')

# The most items of a page by default: of Nova, Glance and Neutron.
SIZE = 1000

_REREADS = 3


def items(
    read: Callable[[str | None], tuple[Sequence[_T], bool]],
    marker_of: Callable[[_T], str],
) -> Iterator[_T]:
    """Yield the items of a list.

    A short page may not be the last one: a service may have a lower limit.

    :param read: Returns the page after a marker, and whether there may be
        more. An empty page is the last one.
    :raises ValueError: if a page ends with its own marker.
    """
    marker = None
    while True:
        page, has_more = read(marker)
        yield from page
        if not page or not has_more:
            return
        last = marker_of(page[-1])
        if last == marker:
            raise ValueError(
                f'the page after {marker} ends with {marker} again'
            )
        marker = last


def whole(read: Callable[[], Iterable[_T]], gone: type[Exception]) -> list[_T]:
    """Return a whole list; read it again if a marker is gone.

    If the last item of a page is deleted before the next page is read, the
    service does not accept it as a marker.

    :param gone: What the answer to that raises.
    """
    for _ in range(_REREADS):
        with contextlib.suppress(gone):
            return list(read())
    return list(read())
