# SPDX-License-Identifier: Apache-2.0
"""The schemas of JSON documents, by the command that writes them."""

from collections.abc import Mapping
from typing import Any

from isolate_aggregates_tools.commands import request_documents
from isolate_aggregates_tools.commands.audit_documents import AUDIT
from isolate_aggregates_tools.commands.change_documents import CHANGES, LOCK
from isolate_aggregates_tools.commands.check_documents import CHECK
from isolate_aggregates_tools.commands.explain_documents import EXPLAIN
from isolate_aggregates_tools.commands.lock_documents import LIST
from isolate_aggregates_tools.commands.sync_documents import SYNC
from isolate_aggregates_tools.decisions.documents import DECISIONS
from isolate_aggregates_tools.documents import published, schema
from isolate_aggregates_tools.effect.documents import EFFECT, Effect
from isolate_aggregates_tools.expectations.documents import TEST
from isolate_aggregates_tools.ledger.documents import LEDGER
from isolate_aggregates_tools.locks.documents import SHOW
from isolate_aggregates_tools.mirrored.chain import InstalledFilter
from isolate_aggregates_tools.room.documents import RELOCATION, SURVIVAL

_EFFECT = {
    key: value
    for key, value in schema(Effect | None, '').items()
    if key not in ('$schema', 'title')
}


def _with_effect(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a document with all that is known of its effect."""
    properties = schema['properties']
    effect = _EFFECT | properties['effect']
    return {**schema, 'properties': {**properties, 'effect': effect}}


FILTERS = schema(tuple[InstalledFilter, ...], 'The installed request filters')

_SCHEMAS = {
    **dict.fromkeys(
        (
            *('key add', 'key remove', 'lock delete'),
            *('provider set', 'provider unset'),
        ),
        _with_effect(CHANGES),
    ),
    'lock create': _with_effect(LOCK),
    'sync': _with_effect(SYNC),
    'audit': AUDIT,
    'candidate list': request_documents.CANDIDATES,
    'capacity list': request_documents.CAPACITY,
    'check': CHECK,
    'decision list': DECISIONS,
    'effect show': EFFECT,
    'explain': EXPLAIN,
    'filter list': FILTERS,
    'ledger': LEDGER,
    'lock list': LIST,
    'matrix list': request_documents.MATRIX,
    'rehearse': EFFECT,
    'relocation create': RELOCATION,
    'lock show': SHOW,
    'survival list': SURVIVAL,
    'test': TEST,
}
SCHEMAS = published(_SCHEMAS)
