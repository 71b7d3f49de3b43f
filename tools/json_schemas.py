# SPDX-License-Identifier: Apache-2.0
"""Writes the schemas of JSON documents into the distributions.

Run by ``make sample``; a test compares the files with the code.
"""

from collections.abc import Mapping
import json
import pathlib
from typing import Any

import isolate_aggregates_reservations
from isolate_aggregates_reservations.commands import documents
import isolate_aggregates_tools
from isolate_aggregates_tools.commands import schemas

DISTRIBUTIONS = (
    (isolate_aggregates_tools, schemas.SCHEMAS),
    (isolate_aggregates_reservations, documents.SCHEMAS),
)


def files() -> dict[pathlib.Path, str]:
    """Return the text of each file by its path."""
    return {
        pathlib.Path(package.__file__).parent
        / 'schemas'
        / f'{command.replace(" ", "-")}.json': _text(schema)
        for package, of_package in DISTRIBUTIONS
        for command, schema in of_package.items()
    }


def _text(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + '\n'


if __name__ == '__main__':
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, 'utf-8')
