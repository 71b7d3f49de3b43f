# SPDX-License-Identifier: Apache-2.0
"""A request filter from a function."""

from isolate_aggregates.filters import RequestFilter


class FunctionFilter(RequestFilter):
    """Calls a function with the request and the aggregates."""

    def __init__(self, function):
        self._function = function

    def __call__(self, request, aggregates):
        return self._function(request, aggregates)
