# SPDX-License-Identifier: Apache-2.0
"""A real nova-scheduler with the filters switched on by configuration only."""

import nova.conf

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.nova import registration

CONF = nova.conf.CONF


class Plugin:
    """Mixed into a functional test of Nova, switches the filters on.

    ``REQUEST_FILTERS`` and ``OPTIONS`` are the nova.conf of the test.
    """

    REQUEST_FILTERS = ('isolate_aggregates',)
    SOURCE = 'nova'
    OPTIONS = ()

    def setUp(self):
        ia_conf.register_opts(CONF)
        self.flags(
            available_filters=[
                'nova.scheduler.filters.all_filters',
                'isolate_aggregates.nova.all_filters',
            ],
            enabled_filters=[
                *CONF.filter_scheduler.enabled_filters,
                'IsolatedAggregatesFilter',
            ],
            group='filter_scheduler',
        )
        self.flags(
            request_filters=list(self.REQUEST_FILTERS),
            aggregate_source=self.SOURCE,
            group=ia_conf.GROUP,
        )
        for group, option, value in self.OPTIONS:
            self.flags(group=group, **{option: value})
        self.addCleanup(registration.uninstall)
        super().setUp()

    def __delattr__(self, name):
        # Nova's tests drop their attributes at the end, which pytest wants to
        # do as well.
        if name in self.__dict__:
            super().__delattr__(name)
