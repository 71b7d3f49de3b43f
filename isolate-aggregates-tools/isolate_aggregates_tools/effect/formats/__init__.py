# SPDX-License-Identifier: Apache-2.0
"""Changes that Terraform would make, read from its plan.

1. ``documents`` reads a file, and says where it is wrong.
2. ``terraform`` yields its items: each compares itself with the cloud after
   the item before it, and yields the commands that have the same result. What
   is not understood is ``Unread``.

Other tools are run: see ``rehearse``.
"""

import os

from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.effect.formats import documents, terraform
from isolate_aggregates_tools.effect.formats.planned import Planned


def read(
    path: str | os.PathLike[str],
    snapshot: Snapshot,
    region: str | None = None,
) -> Planned:
    """Return the changes to a cloud that a plan describes.

    :param region: The region of the cloud; None if it is not known.
    :raises ChangesFileError: if the file cannot be read or is invalid.
    """
    items = terraform.items(documents.json_of(path), region)
    return Planned.of(items, snapshot)
