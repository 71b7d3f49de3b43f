# SPDX-License-Identifier: Apache-2.0
"""Reads and writes cloud files, which describe a cloud in YAML."""

from collections.abc import Iterator, Sequence
import contextlib
import functools
import importlib.resources
import math
import os
import pathlib
import re
from typing import Any, NoReturn

import jsonschema
import yaml

from isolate_aggregates import exception, files
from isolate_aggregates.text import meant, short
from isolate_aggregates.tools.cloud.file import document as cloud_document
from isolate_aggregates.tools.cloud.file import serialize, yaml_errors
from isolate_aggregates.tools.cloud.file.yaml_errors import Problem
from isolate_aggregates.tools.cloud.snapshot import Snapshot

# The most problems in one error message.
_MOST_PROBLEMS = 5

# Strings, and "<<", which merges another mapping.
_KEY_TAGS = ('tag:yaml.org,2002:str', 'tag:yaml.org,2002:merge')

_RARE_BREAK = re.compile('[\x85\u2028\u2029]')


def load(path: str | os.PathLike[str]) -> Snapshot:
    """Read a cloud file.

    :raises CloudFileError: if it cannot be read or is invalid. The message has
        the file, the problems and their places.
    """
    text = _text(path)
    with contextlib.suppress(
        yaml.YAMLError,
        ValueError,
        RecursionError,
        cloud_document.Contradictions,
    ):
        _, document = _loaded(text, _FastLoader)
        if document is not None and not _violations(document):
            return cloud_document.to_snapshot(document, str(path))
    # Now to say what is wrong, and where.
    try:
        root, document = _parse(path, text)
        violations = _violations(document)
        if not violations:
            return cloud_document.to_snapshot(document, str(path))
    except cloud_document.Contradictions as exc:
        violations = exc.problems
    except RecursionError:
        raise exception.CloudFileError(
            path, of_file='is nested too deeply, or contains itself'
        ) from None
    problems = yaml_errors.messages(violations, root)
    more = len(problems) - _MOST_PROBLEMS
    if more > 0:
        problems[_MOST_PROBLEMS:] = [f'and {more} more problems']
    raise exception.CloudFileError(path, problems)


def save(snapshot: Snapshot, path: str | os.PathLike[str]) -> None:
    """Write a cloud file atomically."""
    document = serialize.document(snapshot)
    try:
        with files.replacing(path) as stream:
            yaml.dump(
                document,
                stream,
                Dumper=_Dumper,
                allow_unicode=True,
                sort_keys=False,
            )
    except OSError as exc:
        raise exception.CloudFileError(
            path, of_file=f'cannot be written: {exc.strerror or exc}'
        ) from exc


class _Loader(yaml.SafeLoader):
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


# libyaml takes a fifth of the time, but its messages are worse. PyYAML has it,
# unless it was built where libyaml is missing.
_Fast = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


class _FastLoader(_Fast):  # type: ignore[misc, valid-type]
    """Rejects invalid keys too, without saying which.

    What both loaders accept is the same for both.
    """

    def __init__(self, text: str) -> None:
        # libyaml drops byte order marks, wherever they are.
        if '\ufeff' in text[1:]:
            raise yaml.YAMLError
        super().__init__(text)

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if key.tag in _KEY_TAGS]
        if len(set(keys)) < len(node.value):
            raise yaml.YAMLError
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


class _Dumper(yaml.SafeDumper):
    """Escapes Unicode line breaks, which YAML would read as spaces."""

    def represent_str(self, text: str) -> yaml.ScalarNode:
        style = '"' if _RARE_BREAK.search(text) else None
        return self.represent_scalar('tag:yaml.org,2002:str', text, style)


_Dumper.add_representer(str, _Dumper.represent_str)


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return pathlib.Path(path).read_text(encoding='utf-8')
    except OSError as exc:
        problem = f'cannot be read: {exc.strerror or exc}'
    except UnicodeDecodeError as exc:
        problem = f'is not UTF-8 text: {exc.reason} at byte {exc.start}'
    raise exception.CloudFileError(path, of_file=problem)


def _parse(path: str | os.PathLike[str], text: str) -> tuple[yaml.Node, Any]:
    """Return a document as nodes with line numbers, and as values."""
    try:
        root, document = _loaded(text, _Loader)
        if root is not None:
            return root, document
        problem = 'is empty'
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        where = (
            f'line {mark.line + 1}, column {mark.column + 1}: ' if mark else ''
        )
        problem = f'is not YAML: {where}{exc.problem}'
    except (yaml.YAMLError, ValueError) as exc:
        problem = f'is not YAML: {" ".join(str(exc).split())}'
    raise exception.CloudFileError(path, of_file=problem)


def _loaded(text: str, loader_class: Any) -> tuple[yaml.Node | None, Any]:
    loader = loader_class(text)
    root = loader.get_single_node()
    return root, None if root is None else loader.construct_document(root)


def _violations(document: Any) -> Sequence[Problem]:
    return [
        Problem((*error.absolute_path, *key), text)
        for error in _validator().iter_errors(document)
        for key, text in _explained(error)
    ]


@functools.cache
def _validator() -> jsonschema.protocols.Validator:
    source = importlib.resources.files(__package__) / 'schema.yaml'
    schema = yaml.safe_load(source.read_text(encoding='utf-8'))
    base = jsonschema.Draft202012Validator
    # For JSON schema 4.0 is an integer, and YAML has infinity.
    checker = base.TYPE_CHECKER.redefine_many(
        {
            'integer': lambda _, value: type(value) is int,
            'number': lambda _, value: (
                type(value) is int
                or (type(value) is float and math.isfinite(value))
            ),
        }
    )
    return jsonschema.validators.extend(base, type_checker=checker)(schema)


def _explained(
    error: jsonschema.ValidationError,
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield messages, each with the key below the place of the error."""
    if error.validator != 'additionalProperties':
        yield (), _explain(error)
        return
    properties = error.schema['properties']
    for key in error.instance:
        if key not in properties:
            yield (key,), f'is not a known key{meant(key, properties)}'


def _explain(error: jsonschema.ValidationError) -> str:
    """Return a message for a violation of the schema."""
    value, rule = error.instance, error.validator_value
    match error.validator:
        case 'const':
            return f'must be {rule!r}, not {value!r}'
        case 'type':
            types = [rule] if isinstance(rule, str) else rule
            what = ' or '.join(_TYPES[kind] for kind in types)
            return f'must be {what}, not {_described(value)}{_colon(error)}'
        case 'required':
            # The message names one property, the rule lists all of them.
            name = error.message.removesuffix(' is a required property')
            return f'has no {name}'
        case 'minimum':
            return f'must be at least {rule}, not {value}'
        case 'maximum':
            return f'must be at most {rule}, not {value}'
        case 'uniqueItems':
            several = [item for item in value if value.count(item) > 1]
            return f'has {several[0]} more than once'
        case 'pattern':
            return f'must be a uuid, not {value!r}'
    return str(error.message)


_TYPES = {
    'array': 'a list',
    'boolean': 'true or false',
    'integer': 'an integer',
    'null': 'null',
    'number': 'a number',
    'object': 'a mapping of keys to values',
    'string': 'text',
}


def _described(value: Any) -> str:
    if isinstance(value, dict):
        return 'a mapping'
    if isinstance(value, list):
        return 'a list'
    return 'nothing' if value is None else short(repr(value))


def _colon(error: jsonschema.ValidationError) -> str:
    """Return a hint if a space after a colon is missing."""
    key = error.absolute_path[-1] if error.absolute_path else ''
    text = error.instance if error.instance is not None else key
    if not isinstance(text, str) or ':' not in text:
        return ''
    name, _, value = text.rpartition(':')
    return f'; YAML requires a space after a colon, "{name}: {value.strip()}"'
