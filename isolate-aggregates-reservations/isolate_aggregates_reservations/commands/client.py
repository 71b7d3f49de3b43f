# SPDX-License-Identifier: Apache-2.0
"""The commands of reservations in OpenStackClient, imported when they run."""

from isolate_aggregates_reservations.commands.descriptions import DESCRIPTIONS
from isolate_aggregates_tools.cli.osc import deferred

# The entry points in setup.cfg refer to these classes.
globals().update(deferred.deferred(DESCRIPTIONS, __name__))
