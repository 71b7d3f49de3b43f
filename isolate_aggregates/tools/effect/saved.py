# SPDX-License-Identifier: Apache-2.0
"""Reads effects that were saved as JSON."""

import importlib.resources
import json
import os
import pathlib
from typing import Any

import jsonschema

from isolate_aggregates import exception


def schema() -> dict[str, Any]:
    """Return the JSON schema of an effect."""
    source = importlib.resources.files(__package__) / 'schema.json'
    document: dict[str, Any] = json.loads(source.read_text('utf-8'))
    return document


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read an effect that ``effect -f json`` has written.

    :raises ChangesFileError: if it cannot be read or is no effect.
    """
    try:
        document = json.loads(pathlib.Path(path).read_text('utf-8'))
        jsonschema.validate(document, schema())
    except OSError as exc:
        problem = f'cannot be read: {exc.strerror or exc}'
    except ValueError as exc:
        problem = f'is not JSON: {exc}'
    except jsonschema.ValidationError as exc:
        place = '.'.join(map(str, exc.absolute_path)) or 'its top'
        problem = f'is not an effect: {place}: {exc.message}'
    else:
        effect: dict[str, Any] = document
        return effect
    raise exception.ChangesFileError(str(path), f' {problem}')
