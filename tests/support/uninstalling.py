# SPDX-License-Identifier: Apache-2.0
"""Takes our request filters out of the nova-scheduler of this process."""

from nova.scheduler import manager, request_filter
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.client import report

from isolate_aggregates.nova import claims, placed, records, registration


def uninstall():
    """Leave Nova as it was before our request filters were installed."""
    records.uninstall()
    report.SchedulerReportClient.claim_resources = claims._CLAIM
    scheduler_utils.claim_resources = placed._CLAIM
    manager.SchedulerManager._consume_selected_host = staticmethod(
        placed._CONSUME
    )
    if registration._process:
        request_filter.process_reqspec = registration._process
    registration._process = registration._runner = None
    request_filter.ALL_REQUEST_FILTERS[:] = registration.without_ours()
