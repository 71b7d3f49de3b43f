# SPDX-License-Identifier: Apache-2.0
"""Properties that are computed once, without a lock."""

import functools
from typing import Any, Self, TypeVar, overload

_T = TypeVar('_T')


class lazy_property(functools.cached_property[_T]):  # noqa: N801, TID251
    """Like ``functools.cached_property``, but without a lock.

    Before Python 3.12, ``functools.cached_property`` holds one lock for all
    instances of a class while it calls the function. If that waits for a
    service or a database, all other threads wait for it too. Here, threads
    that read the property of an instance for the first time at the same time
    each call the function, and all of them get the first result.
    """

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _T: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        assert self.attrname is not None
        values = vars(instance)
        try:
            return values[self.attrname]
        except KeyError:
            return values.setdefault(self.attrname, self.func(instance))
