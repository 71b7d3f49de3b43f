# SPDX-License-Identifier: Apache-2.0
"""``limit show``: shows how long a query to Placement may be."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.query_limit import measure
from isolate_aggregates.tools.cli import fields, output


class ShowLimit(output.ShowOne):
    """Show how long a query to Placement may be, and what to set.

    A few queries of up to 65,535 bytes are sent, which cost Placement next to
    nothing. The result is for the endpoint of these credentials;
    isolate-aggregates-status upgrade check measures that of nova-scheduler.
    """

    app: Any

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        max_length = self.app.conf[ia_conf.GROUP].max_query_length
        limit = measure(self.app.connect().adapter('placement'))
        values = {
            'endpoint': limit.endpoint,
            'longest': limit.longest,
            'refused': fields.Value(limit.refused),
            'happened': limit.happened,
            'max_query_length': max_length,
            'advised': limit.advised,
            'verdict': limit.verdict(max_length).value,
            'advice': limit.advice(max_length),
        }
        return tuple(values), tuple(values.values())
