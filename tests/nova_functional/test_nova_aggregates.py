# SPDX-License-Identifier: Apache-2.0
"""Nova's own tests of aggregates, with our filters."""

from base import ISOLATE, OverApi, Plugin, request_filter_names
from nova.tests.functional import test_aggregates


def _poisoned(*args, **kwargs):
    raise AssertionError("Nova's in-tree isolate_aggregates has run")


class InTreeMustNotRun(Plugin):
    """The in-tree query must not be made even once."""

    def setUp(self):
        super().setUp()
        self.stub_out(
            'nova.objects.AggregateList.get_non_matching_by_metadata_keys',
            _poisoned,
        )

    def tearDown(self):
        names = request_filter_names()
        assert names.count('isolate_aggregates') == 1
        super().tearDown()


class IsolateAggregateFilterTest(
    InTreeMustNotRun, test_aggregates.IsolateAggregateFilterTest
):
    """Nova's tests, every one."""


class IsolateAggregateFilterOverApiTest(
    OverApi, InTreeMustNotRun, test_aggregates.IsolateAggregateFilterTest
):
    """The same, with the aggregates read from Nova's API."""


class TenantAggregateFilterTest(
    InTreeMustNotRun, test_aggregates.TenantAggregateFilterTest
):
    """Nova requires aggregates by project while ours forbid others."""

    REQUEST_FILTERS = ('isolate_aggregates', 'isolate_tenants')
    OPTIONS = (ISOLATE,)
