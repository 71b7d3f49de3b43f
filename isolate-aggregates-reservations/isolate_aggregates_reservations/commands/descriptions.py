# SPDX-License-Identifier: Apache-2.0
"""The help line of each command of reservations."""

# The first line of the docstring of each command, by the name of its entry
# point in isolate_aggregates.cli.
DESCRIPTIONS = {
    'reservation_calendar_list': (
        'Show the free capacity of hosts for reservations over time.'
    ),
    'reservation_create': 'Reserve capacity for the servers of a project.',
    'reservation_end': 'End a reservation now, and delete its servers.',
    'reservation_history_list': (
        'Show what was reserved, by whom and when, and how it was changed.'
    ),
    'reservation_host_list': (
        'Show the hosts for reservations, and the slots on each.'
    ),
    'reservation_host_set': 'Enable or disable hosts for reservations.',
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
    'reservation_show': 'Show everything about a reservation.',
}
