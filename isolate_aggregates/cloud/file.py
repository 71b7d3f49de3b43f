# SPDX-License-Identifier: Apache-2.0
"""Reads and writes cloud files: the description of a cloud in YAML."""

import functools
import importlib.resources
import math
import os
import pathlib
import re
from typing import Any, NoReturn

import jsonschema
import yaml

from isolate_aggregates import exception
from isolate_aggregates.cloud import atomic
from isolate_aggregates.cloud import document as cloud_document
from isolate_aggregates.cloud.snapshot import Snapshot

# How many problems of one file are worth telling at once.
_MOST_PROBLEMS = 5

# Text, and "<<", which takes in another mapping.
_KEY_TAGS = ('tag:yaml.org,2002:str', 'tag:yaml.org,2002:merge')

_RARE_BREAK = re.compile('[\x85\u2028\u2029]')


def load(path: str | os.PathLike[str]) -> Snapshot:
    """Read a cloud file.

    :raises CloudFileError: if it cannot be read or does not describe a
        cloud; the message names the file, the places in it and the problems.
    """
    try:
        document = _parse(path)
        problems = _violations(document)
        if not problems:
            return cloud_document.to_snapshot(document, str(path))
    except cloud_document.Contradictions as exc:
        problems = list(exc.problems)
    except RecursionError:
        problems = ['is nested too deeply, or contains itself']
    more = len(problems) - _MOST_PROBLEMS
    if more > 0:
        problems[_MOST_PROBLEMS:] = [f'and {more} more problems']
    raise exception.CloudFileError(path, problems)


def save(snapshot: Snapshot, path: str | os.PathLike[str]) -> None:
    """Write a cloud file, whole or not at all.

    :param path: An existing file is replaced at the end.
    :raises CloudFileError: if it cannot be written.
    """
    document = cloud_document.from_snapshot(snapshot)
    try:
        with atomic.replacing(path) as stream:
            yaml.dump(
                document,
                stream,
                Dumper=_Dumper,
                allow_unicode=True,
                sort_keys=False,
            )
    except OSError as exc:
        raise exception.CloudFileError(
            path, [f'cannot be written: {exc.strerror or exc}']
        ) from exc


class _Loader(yaml.SafeLoader):
    """Refuses keys that no cloud file can mean.

    Of a key that is given twice YAML would lose one, and one such as ``1`` or
    ``yes`` would be a number or a truth value to YAML.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if key.tag not in _KEY_TAGS:
                self._refuse(key, 'a key must be text; put it in quotes')
            if key.value in seen:
                self._refuse(key, f'the key {key.value!r} is given twice')
            seen.add(key.value)
        return node

    def _refuse(self, key: yaml.Node, problem: str) -> NoReturn:
        raise yaml.constructor.ConstructorError(
            None, None, problem, key.start_mark
        )


class _Dumper(yaml.SafeDumper):
    """Escapes the rarer line breaks, which YAML would read as blanks."""

    def represent_str(self, text: str) -> yaml.ScalarNode:
        style = '"' if _RARE_BREAK.search(text) else None
        return self.represent_scalar('tag:yaml.org,2002:str', text, style)


_Dumper.add_representer(str, _Dumper.represent_str)


def _parse(path: str | os.PathLike[str]) -> Any:
    try:
        text = pathlib.Path(path).read_text(encoding='utf-8')
        # _Loader is a SafeLoader.
        return yaml.load(text, Loader=_Loader)  # noqa: S506
    except OSError as exc:
        problem = f'cannot be read: {exc.strerror or exc}'
    except UnicodeDecodeError as exc:
        problem = f'is not UTF-8 text: {exc.reason} at byte {exc.start}'
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        where = (
            f'line {mark.line + 1}, column {mark.column + 1}: ' if mark else ''
        )
        problem = f'is not YAML: {where}{exc.problem}'
    except (yaml.YAMLError, ValueError) as exc:
        problem = f'is not YAML: {" ".join(str(exc).split())}'
    raise exception.CloudFileError(path, [problem])


def _violations(document: Any) -> list[str]:
    if document is None:
        return ['is empty']
    return [
        f'{error.json_path} {_explain(error)}'
        for error in sorted(
            _validator().iter_errors(document), key=lambda e: e.json_path
        )
    ]


@functools.cache
def _validator() -> jsonschema.protocols.Validator:
    source = importlib.resources.files(__package__) / 'schema.yaml'
    schema = yaml.safe_load(source.read_text(encoding='utf-8'))
    base = jsonschema.Draft202012Validator
    # JSON has one kind of numbers; for Python 4.0 is no integer, and YAML has
    # infinity.
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


def _explain(error: jsonschema.ValidationError) -> str:
    if error.validator == 'const':
        return f'must be {error.validator_value!r}, not {error.instance!r}'
    if error.validator == 'pattern' and error.schema.get(
        'pattern', ''
    ).endswith('{12}$'):
        return f'must be a uuid, not {error.instance!r}'
    return str(error.message)
