# SPDX-License-Identifier: Apache-2.0
"""The help line of each command of the tools."""

# The first line of the docstring of each command, by the name of its entry
# point in isolate_aggregates.cli.
DESCRIPTIONS = {
    'audit': 'Find problems with the isolation, and how to repair them.',
    'candidate_list': (
        'Show the hosts that a server may use, and why it may use no others.'
    ),
    'capacity_list': (
        'Show how many more servers of a flavor fit, in total and on each '
        'host.'
    ),
    'check': 'Say whether a server may use a host, and why not.',
    'decision_list': (
        'Sum up why requests got no host, from the log of nova-scheduler.'
    ),
    'effect_show': (
        'Show what changes would do to servers, flavors, projects and '
        'findings.'
    ),
    'explain': 'Show for every host why a server may use it, or why not.',
    'exporter': 'Export Prometheus metrics.',
    'filter_list': 'Show the installed request filters, and whether they run.',
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
    'lock_delete': 'Let all servers use the hosts of an aggregate again.',
    'lock_list': 'Show all locks, and the hosts and the capacity behind each.',
    'lock_show': 'Show everything about one lock, aggregate or host.',
    'matrix_list': 'Show which flavors and images may use which hosts.',
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
    'snapshot_save': 'Write a cloud file from the live cloud.',
    'survival_list': (
        'Show which servers have nowhere to go if any hosts fail.'
    ),
    'sync': 'Update Placement from the host aggregates and their tags.',
    'test': 'Test whether a cloud isolates hosts as it is expected to.',
}
