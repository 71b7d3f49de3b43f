# SPDX-License-Identifier: Apache-2.0
"""The request filters inside an unmodified nova-scheduler.

This is the only package that imports nova. Nova finds it by the name
``isolate_aggregates.nova.all_filters`` in ``[filter_scheduler]
available_filters``.
"""


def all_filters() -> list[type]:
    """Return our host filters, after putting the request filters in place.

    nova-scheduler imports every name in ``[filter_scheduler]
    available_filters`` and calls those that are functions, once for each
    worker and before the first request
    (``nova.loadables.BaseLoader.get_matching_classes``). That is where the
    request filters join Nova's.

    :raises IsolateAggregatesError: if the configuration cannot work; it ends
        nova-scheduler, which would otherwise run without isolation.
    """
    # Not at the top: importing this package must not need a nova.conf.
    from isolate_aggregates.nova import host_filter, registration

    registration.install()
    return [host_filter.IsolatedAggregatesFilter]
