# SPDX-License-Identifier: Apache-2.0
"""Reads YAML files, with places and lines."""

import os
from typing import Any, NoReturn

import yaml

from isolate_aggregates_tools import files

TEXT_TAG = 'tag:yaml.org,2002:str'
# With "<<", which merges another mapping.
_KEY_TAGS = TEXT_TAG, 'tag:yaml.org,2002:merge'


ENDLESS = 'is nested too deeply, or contains itself'


class Unreadable(ValueError):
    """A file cannot be read as YAML; the message is a predicate."""


class Loader(yaml.SafeLoader):
    """Rejects duplicate keys and keys that are not strings.

    YAML would ignore all but one of the duplicates, and read keys like ``1``
    or ``yes`` as numbers or booleans.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys = set()
        for key, _ in node.value:
            if key.tag not in _KEY_TAGS:
                self._refuse(key, 'a key must be text; put it in quotes')
            if key.value in keys:
                self._refuse(key, f'the key {key.value!r} is given twice')
            keys.add(key.value)
        return node

    def _refuse(self, key: yaml.Node, problem: str) -> NoReturn:
        raise yaml.constructor.ConstructorError(
            None, None, problem, key.start_mark
        )


def text_of(path: str | os.PathLike[str]) -> str:
    """Return the text of a file.

    :raises Unreadable: if it cannot be read.
    """
    try:
        return files.read_text(path)
    except OSError as exc:
        problem = f'cannot be read: {exc.strerror or exc}'
    except UnicodeDecodeError as exc:
        problem = f'is not UTF-8 text: {exc.reason} at byte {exc.start}'
    raise Unreadable(problem)


def parse(text: str) -> tuple[yaml.Node, Any]:
    """Return a document as nodes with line numbers, and as values.

    :raises Unreadable: if it is not one YAML document.
    """
    try:
        loader = Loader(text)
        root = loader.get_single_node()
        if root is not None:
            return root, loader.construct_document(root)
        problem = 'is empty'
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        where = (
            f'line {mark.line + 1}, column {mark.column + 1}: ' if mark else ''
        )
        problem = f'is not YAML: {where}{exc.problem}'
    except (yaml.YAMLError, ValueError) as exc:
        problem = f'is not YAML: {" ".join(str(exc).split())}'
    except RecursionError:
        problem = ENDLESS
    raise Unreadable(problem)
