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
    **dict.fromkeys(('grant', 'revoke', 'unlock'), CHANGES),
    'lock': LOCK,
    'snapshot': documents.DIFF,
    'sync': documents.SYNC,
    'audit': documents.AUDIT,
    'candidates': request_documents.CANDIDATES,
    'capacity': request_documents.CAPACITY,
    'effect': EFFECT,
    'explain': documents.EXPLAIN,
    'ledger': LEDGER,
    'list': documents.LIST,
    'matrix': request_documents.MATRIX,
    'relocate': RELOCATION,
    'show': SHOW,
    'survive': SURVIVAL,
    'test': TEST,
}
