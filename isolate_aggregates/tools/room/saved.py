# SPDX-License-Identifier: Apache-2.0
"""Reads plans that were saved as JSON."""

import importlib.resources
import json
import os
from typing import Any

from isolate_aggregates.tools.effect import saved


def schema(name: str) -> dict[str, Any]:
    """Return a JSON schema: ``relocation`` or ``survival``."""
    source = importlib.resources.files(__package__) / f'{name}.json'
    document: dict[str, Any] = json.loads(source.read_text('utf-8'))
    return document


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a plan that ``relocate -f json`` has written.

    :raises ChangesFileError: if it cannot be read or is no plan.
    """
    return saved.document(path, 'a plan of relocate', schema('relocation'))
