# SPDX-License-Identifier: Apache-2.0
"""The schemas of JSON documents, by the command that writes them."""

from isolate_aggregates.tools.cli.documents import CHANGES, LOCK
from isolate_aggregates.tools.commands import documents, request_documents
from isolate_aggregates.tools.effect.documents import EFFECT
from isolate_aggregates.tools.expectations.documents import TEST
from isolate_aggregates.tools.ledger.documents import LEDGER
from isolate_aggregates.tools.locks.documents import SHOW
from isolate_aggregates.tools.room.documents import RELOCATION, SURVIVAL

SCHEMAS = {
    **dict.fromkeys(
        (
            *('key add', 'key remove', 'lock delete'),
            *('provider set', 'provider unset'),
        ),
        CHANGES,
    ),
    'lock create': LOCK,
    'sync': documents.SYNC,
    'audit': documents.AUDIT,
    'candidate list': request_documents.CANDIDATES,
    'capacity list': request_documents.CAPACITY,
    'check': documents.CHECK,
    'effect show': EFFECT,
    'explain': documents.EXPLAIN,
    'filter list': documents.FILTERS,
    'ledger': LEDGER,
    'lock list': documents.LIST,
    'matrix list': request_documents.MATRIX,
    'relocation create': RELOCATION,
    'lock show': SHOW,
    'survival list': SURVIVAL,
    'test': TEST,
}
