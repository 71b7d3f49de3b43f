# SPDX-License-Identifier: Apache-2.0
"""The JSON document of ``check``."""

from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools import documents
from isolate_aggregates_tools.documents import one_of

Verdict = Annotated[str, one_of('candidate', 'excluded')]


@dataclass(frozen=True, kw_only=True)
class CheckedHost:
    """Whether a server may use a host, and why not."""

    host: str
    verdict: Verdict
    reason: Annotated[str | None, 'Null for a candidate.']


CHECK = documents.schema(CheckedHost, 'Whether a server may use a host')
