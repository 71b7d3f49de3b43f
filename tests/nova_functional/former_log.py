# SPDX-License-Identifier: Apache-2.0
"""What the log told of staged incidents before there were records.

nova-scheduler logged the constraints on a request in one line of at most 300
characters at INFO, or why it refused the request, which it still does. With
``FORMER_LOG=FILE`` the tests of records write there whether the line would
have told the cause of an incident; ``tools/benchmarks/incidents.py`` counts
them. A line tells a cause if it is a lock, and the line names an aggregate or
a lock that closes a host which would have served; or if the request is
refused.
"""

import json
import os

from isolate_aggregates.filters.constraints import (
    Forbid,
    LazyForbid,
    Require,
)

VARIABLE = 'FORMER_LOG'
# The maximum lengths of a line and of the names in it.
MOST, NAMES = 300, 5


def line(decision, server, project):
    """Return the line about the constraints of a decision; empty if none."""
    if not decision.destination.yielded:
        return ''
    text = f'Restricted server {server} of project {project}: '
    separator = last = ''
    for conclusion in decision.destination.yielded:
        constraint = conclusion.constraint
        is_lazy = isinstance(constraint, LazyForbid)
        for part in constraint.make() if is_lazy else (constraint,):
            name = conclusion.filter_name
            of_filter = f'{name}: ' if name != last else ''
            text += f'{separator}{of_filter}{_reason(part)}'
            separator, last = '; ', name
            if len(text) > MOST:
                return f'{text[: MOST - 3]}...'
    return text


def _reason(part):
    if isinstance(part, Forbid | Require) and len(part.aggregates) > NAMES:
        names = ', '.join(each.name for each in part.aggregates[:NAMES])
        more = len(part.aggregates) - NAMES
        return f'aggregates {names} and {more} more: {part.cause}'
    return part.reason


def tells(record, text):
    """Return whether the log told the cause that a record names."""
    if record['result'] == 'refused':
        return True
    if record['cause'] != 'locked':
        return False
    named = [
        word
        for entries in record['detail'].get('hosts', {}).values()
        for entry in entries
        for word in (
            entry.get('name'),
            *entry.get('locks', ()),
            *entry.get('in_none_of', ()),
        )
    ]
    return any(word and word in text for word in named)


def note(test, record, text):
    """Write down whether the line tells the cause of an incident."""
    found = {
        'test': test,
        'cause': record['cause'],
        'line': text,
        'told': tells(record, text),
    }
    with open(os.environ[VARIABLE], 'a', encoding='utf-8') as stream:
        stream.write(f'{json.dumps(found)}\n')


def is_wanted():
    """Return whether the tests note what the line tells."""
    return VARIABLE in os.environ
