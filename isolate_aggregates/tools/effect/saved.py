# SPDX-License-Identifier: Apache-2.0
"""Reads effects and other documents that were saved as JSON."""

import json
import os
from typing import Any

import jsonschema

from isolate_aggregates.tools import errors as tools_errors
from isolate_aggregates.tools import files
from isolate_aggregates.tools.effect.documents import EFFECT


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read an effect that ``effect show -f json`` has written.

    :raises ChangesFileError: if it cannot be read or is no effect.
    """
    return document(path, 'an effect', EFFECT)


def document(
    path: str | os.PathLike[str], what: str, schema: dict[str, Any]
) -> dict[str, Any]:
    """Read a document that a command has written with ``-f json``.

    :param what: The document in words, such as ``an effect``.
    :raises ChangesFileError: if it cannot be read or is something else.
    """
    try:
        content = json.loads(files.read_text(path))
        jsonschema.validate(content, schema)
    except OSError as exc:
        problem = f'cannot be read: {exc.strerror or exc}'
    except ValueError as exc:
        problem = f'is not JSON: {exc}'
    except jsonschema.ValidationError as exc:
        place = '.'.join(map(str, exc.absolute_path)) or 'its top'
        problem = f'is not {what}: {place}: {exc.message}'
    else:
        result: dict[str, Any] = content
        return result
    raise tools_errors.ChangesFileError(str(path), f' {problem}')
