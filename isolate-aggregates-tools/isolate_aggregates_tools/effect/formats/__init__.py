# SPDX-License-Identifier: Apache-2.0
"""Changes that other tools would make, read from their files.

1. ``documents`` reads a file, and says where it is wrong.
2. ``terraform`` and ``ansible`` yield its items: each compares itself with the
   cloud after the item before it, and yields the commands that have the same
   result. What is not understood is ``Unread``.
"""

from collections.abc import Callable, Iterator, Mapping
import os
from types import MappingProxyType

from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.effect.formats import (
    ansible,
    documents,
    terraform,
)
from isolate_aggregates_tools.effect.formats.documents import Part
from isolate_aggregates_tools.effect.formats.planned import Item, Planned

# Returns the parts of a file.
_Parse = Callable[[str | os.PathLike[str]], Part]
# Yields the items of the file, and what was not read of it.
_Compare = Callable[[Part, str | None], Iterator[Item]]

FORMATS: Mapping[str, tuple[_Parse, _Compare]] = MappingProxyType(
    {
        'terraform': (documents.json_of, terraform.items),
        'ansible': (documents.yaml_of, ansible.items),
    }
)


def read(
    path: str | os.PathLike[str],
    kind: str,
    snapshot: Snapshot,
    region: str | None = None,
) -> Planned:
    """Return the changes to a cloud that a file describes.

    :param kind: One of ``FORMATS``.
    :param region: The region of the cloud; None if it is not known.
    :raises ChangesFileError: if the file cannot be read or is invalid.
    """
    parse, compare = FORMATS[kind]
    return Planned.of(compare(parse(path), region), snapshot)
