# SPDX-License-Identifier: Apache-2.0
"""Nova's own tests of isolated aggregates, on our filter."""

from base import Plugin
from nova.scheduler import request_filter
from nova.tests.functional import test_aggregates


def _poisoned(*args, **kwargs):
    raise AssertionError("Nova's in-tree isolate_aggregates has run")


class IsolateAggregates(Plugin):
    """The in-tree query must not be made even once."""

    def setUp(self):
        super().setUp()
        self.stub_out(
            'nova.objects.AggregateList.get_non_matching_by_metadata_keys',
            _poisoned,
        )

    def tearDown(self):
        names = [f.__name__ for f in request_filter.ALL_REQUEST_FILTERS]
        assert names.count('isolate_aggregates') == 1
        super().tearDown()


class IsolateAggregateFilterTest(
    IsolateAggregates, test_aggregates.IsolateAggregateFilterTest
):
    """Nova's tests, every one."""
