# SPDX-License-Identifier: Apache-2.0
"""The commands of the tools in OpenStackClient, each imported when it runs."""

from isolate_aggregates_tools.cli.osc import deferred
from isolate_aggregates_tools.commands.descriptions import DESCRIPTIONS

# The entry points in setup.cfg refer to these classes.
globals().update(deferred.deferred(DESCRIPTIONS, __name__))
