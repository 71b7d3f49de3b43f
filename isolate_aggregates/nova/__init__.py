# SPDX-License-Identifier: Apache-2.0
"""Runs the request filters inside an unmodified nova-scheduler.

Only this package imports nova. Nova loads it through
``isolate_aggregates.nova.all_filters`` in ``[filter_scheduler]
available_filters``.
"""


def all_filters() -> list[type]:
    """Install the request filters, and return our host filters.

    nova-scheduler imports every name in ``[filter_scheduler]
    available_filters`` and calls those that are functions, once per worker and
    before the first request
    (``nova.loadables.BaseLoader.get_matching_classes``). This call adds the
    request filters to Nova's.

    :raises IsolateAggregatesError: if the configuration is invalid. This stops
        nova-scheduler, which would otherwise run without isolation.
    """
    # Imported late, because importing this package must not need a nova.conf.
    from isolate_aggregates.nova import host_filter, registration

    registration.install()
    return [host_filter.IsolatedAggregatesFilter]
