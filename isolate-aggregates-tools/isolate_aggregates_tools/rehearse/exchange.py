# SPDX-License-Identifier: Apache-2.0
"""Requests of the tool, and their answers."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import http
from typing import Any

# A body in JSON.
Document = Any

UNKNOWN = http.HTTPStatus.NOT_IMPLEMENTED
# How many entries a page of Nova has at most, if max_limit is its default.
PAGE = 1000


@dataclasses.dataclass(frozen=True)
class Request:
    """A request, without the prefix of its service.

    :param minor: The microversion, without the ``2.``; 0 where there is none.
    :param url: The URL of the service, for links.
    :param is_own: Whether this package asks, as its requests say.
    """

    method: str
    path: str
    query: Mapping[str, str]
    body: Document
    minor: int = 0
    url: str = ''
    is_own: bool = False


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer; without a document, its body is empty."""

    status: int
    document: Document = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Refused(Exception):
    """The cloud would refuse the request, too.

    :param reason: Why, without a full stop.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Unknown(Exception):
    """It is not known what the cloud would do.

    The argument is what is not known, without a full stop.
    """


@dataclasses.dataclass(frozen=True)
class Call:
    """A request and its fate.

    :param reason: Why it was refused, or what is not known.
    :param minor: The microversion, as that of the request.
    """

    service: str
    method: str
    path: str
    status: int
    reason: str = ''
    body: Document = None
    minor: int = 0

    @property
    def is_change(self) -> bool:
        return self.method not in ('GET', 'HEAD', 'OPTIONS')

    @property
    def is_unknown(self) -> bool:
        return self.status == UNKNOWN

    @property
    def is_refused(self) -> bool:
        """Whether it is a change that the cloud would refuse."""
        return (
            self.is_change and 400 <= self.status < 500 and not self.is_unknown
        )

    def __str__(self) -> str:
        return f'{self.method} {self.service} {self.path}'


def check_query(
    query: Mapping[str, str], known: Iterable[str], what: str
) -> None:
    """Check that a list is asked for by known parameters only.

    :param what: What is listed, in the plural.
    :raises Unknown: if it is not.
    """
    others = sorted(query.keys() - set(known))
    if others:
        raise Unknown(f'{what} by {", ".join(others)}')


def page(
    items: Sequence[dict[str, Any]],
    query: Mapping[str, str],
    most: int = PAGE,
) -> Sequence[dict[str, Any]]:
    """Return the part of a list that ``limit`` and ``marker`` ask for.

    :raises Refused: if the marker is not in the list.
    """
    start = 0
    if marker := query.get('marker'):
        ids = [item['id'] for item in items]
        if marker not in ids:
            raise Refused(400, f'marker [{marker}] not found')
        start = ids.index(marker) + 1
    limit = query.get('limit', str(most))
    if not limit.isdecimal():
        raise Refused(400, f'limit must be a number, not {limit!r}')
    return items[start : start + min(int(limit), most)]


def has_more(some: Sequence[dict[str, Any]], query: Mapping[str, str]) -> bool:
    """Return whether a page is full, so that Nova gives a link to the next."""
    return bool(some) and len(some) == min(int(query.get('limit', PAGE)), PAGE)
