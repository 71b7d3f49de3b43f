# SPDX-License-Identifier: Apache-2.0
"""The JSON document of ``sync``."""

from dataclasses import dataclass
from typing import Annotated

from isolate_aggregates_tools import documents
from isolate_aggregates_tools.cli.preview import PreviewedEffect
from isolate_aggregates_tools.documents import Names
from isolate_aggregates_tools.operate.sync.projects import TagChange
from isolate_aggregates_tools.operate.sync.target import ProviderChange


@dataclass(frozen=True, kw_only=True)
class Sync:
    """What sync changes, or would change."""

    applied: Annotated[bool, 'Whether the changes were made.']
    changes: Annotated[
        tuple[ProviderChange, ...],
        'Changes of resource providers; the host is empty if the provider is '
        'no compute node.',
    ]
    tags: Annotated[tuple[TagChange, ...], 'Changes of aggregates.']
    problems: Names
    failures: Annotated[Names, 'Changes that could not be made.']
    effect: PreviewedEffect


SYNC = documents.schema(Sync, 'What sync changes')
