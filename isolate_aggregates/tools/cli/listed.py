# SPDX-License-Identifier: Apache-2.0
"""The help line of each command, available without importing it.

The help of ``isolate-aggregates`` and of ``openstack`` lists every command.
Importing all of them would take longer than the rest of the help.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from isolate_aggregates.lazy import lazy_property

if TYPE_CHECKING:
    from cliff import command

# The first line of the docstring of each command, by the name of its entry
# point in isolate_aggregates.cli.
DESCRIPTIONS = {
    'audit': ('Find problems with the isolation, and how to repair them.'),
    'candidate_list': (
        'Show the hosts that a server may use, and why it may use no others.'
    ),
    'capacity_list': (
        'Show how many more servers of a flavor fit, in total and on each '
        'host.'
    ),
    'check': ('Say whether a server may use a host, and why not.'),
    'effect_show': (
        'Show what changes would do to servers, flavors, projects and '
        'findings.'
    ),
    'explain': ('Show for every host why a server may use it, or why not.'),
    'exporter': ('Export Prometheus metrics.'),
    'filter_list': (
        'Show the installed request filters, and whether they run.'
    ),
    'key_add': (
        'Let servers of a flavor or an image use hosts locked by a trait.'
    ),
    'key_remove': (
        'Keep servers of a flavor or an image out of hosts locked by a trait.'
    ),
    'ledger': (
        'Show on which hosts servers ran, and on which they could, by day.'
    ),
    'lock_create': (
        'Let only servers with some traits or projects use hosts of an '
        'aggregate.'
    ),
    'lock_delete': ('Let all servers use the hosts of an aggregate again.'),
    'lock_list': (
        'Show all locks, and the hosts and the capacity behind each.'
    ),
    'lock_show': ('Show everything about one lock, aggregate or host.'),
    'matrix_list': ('Show which flavors and images may use which hosts.'),
    'provider_set': (
        'Add a trait to a resource provider, or add it to an aggregate.'
    ),
    'provider_unset': (
        'Remove a trait from a resource provider, or it from an aggregate.'
    ),
    'rehearse': (
        'Run a tool against a copy of the cloud, and show what it would do.'
    ),
    'relocation_create': (
        'Plan migrations that empty hosts, bring servers home, or make room.'
    ),
    'report_save': (
        'Write a page that shows which flavors may use which hosts.'
    ),
    'reservation_calendar_list': (
        'Show the free capacity of hosts for reservations over time.'
    ),
    'reservation_create': ('Reserve capacity for the servers of a project.'),
    'reservation_end': ('End a reservation now, and delete its servers.'),
    'reservation_history_list': (
        'Show what was reserved, by whom and when, and how it was changed.'
    ),
    'reservation_host_list': (
        'Show the hosts for reservations, and the slots on each.'
    ),
    'reservation_host_set': ('Enable or disable hosts for reservations.'),
    'reservation_list': (
        'Show all reservations, their slots and their problems.'
    ),
    'reservation_reconcile': (
        'Start and end reservations that are due, and complete others.'
    ),
    'reservation_repair': (
        'Move slots from hosts that are down, disabled, deleted or too small.'
    ),
    'reservation_set': (
        'Change the slots, the end or the name of a reservation.'
    ),
    'reservation_show': ('Show everything about a reservation.'),
    'snapshot_save': ('Write a cloud file from the live cloud.'),
    'survival_list': (
        'Show which servers have nowhere to go if any hosts fail.'
    ),
    'sync': ('Update Placement from the host aggregates and their tags.'),
    'test': ('Test whether a cloud isolates hosts as it is expected to.'),
}


class Listed:
    """A command that is imported only if more than its help line is needed.

    :param name: The name of its entry point in ``isolate_aggregates.cli``.
    """

    # The help of the client reads it.
    deprecated = False

    def __init__(
        self, name: str, make: 'Callable[[], command.Command]'
    ) -> None:
        self._name = name
        self._make = make

    def get_description(self) -> str:
        """Return the help line of the command."""
        return DESCRIPTIONS[self._name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._command, name)

    @lazy_property
    def _command(self) -> 'command.Command':
        return self._make()
