# SPDX-License-Identifier: Apache-2.0
"""Changes that other tools would make, read from their files.

1. ``documents`` reads a file, and says where it is wrong.
2. ``terraform``, ``ansible`` and ``korc`` compare it with a snapshot and yield
   the commands that have the same result.
"""

from collections.abc import Callable, Iterator, Mapping
import os
from types import MappingProxyType

from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.effect.formats import (
    ansible,
    documents,
    korc,
    terraform,
)
from isolate_aggregates.tools.effect.formats.documents import Part
from isolate_aggregates.tools.effect.formats.planned import Planned, Step

# Returns the parts of a file.
_Parse = Callable[[str | os.PathLike[str]], Part]
# Yields the changes that the parts describe.
_Compare = Callable[[Part, Snapshot], Iterator[Step]]

FORMATS: Mapping[str, tuple[_Parse, _Compare]] = MappingProxyType(
    {
        'terraform': (documents.json_of, terraform.steps),
        'ansible': (documents.yaml_of, ansible.steps),
        'k-orc': (documents.yaml_documents_of, korc.steps),
    }
)


def read(
    path: str | os.PathLike[str], kind: str, snapshot: Snapshot
) -> Planned:
    """Return the changes to a cloud that a file describes.

    :param kind: One of ``FORMATS``.
    :raises ChangesFileError: if the file cannot be read or is invalid.
    """
    parse, compare = FORMATS[kind]
    return Planned.of(compare(parse(path), snapshot))
