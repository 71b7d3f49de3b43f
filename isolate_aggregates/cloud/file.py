# SPDX-License-Identifier: Apache-2.0
"""Reads and writes cloud files: the description of a cloud in YAML."""

from collections.abc import Hashable
import functools
import importlib.resources
import os
import pathlib
import tempfile
from typing import Any

import jsonschema
import yaml

from isolate_aggregates import exception
from isolate_aggregates.cloud import document as cloud_document
from isolate_aggregates.cloud.snapshot import Snapshot

# How many problems of one file are worth telling at once.
_MOST_PROBLEMS = 5


def load(path: str | os.PathLike[str]) -> Snapshot:
    """Read a cloud file.

    :param path: The file.
    :raises CloudFileError: if it can not be read or does not describe a
        cloud; the message names the file, the places in it and the problems.
    """
    document = _parse(path)
    problems = [
        f'{error.json_path} {_explain(error)}'
        for error in sorted(
            _validator().iter_errors(document), key=lambda e: e.json_path
        )
    ]
    if not problems:
        try:
            return cloud_document.to_snapshot(document, str(path))
        except cloud_document.Contradictions as exc:
            problems = list(exc.problems)
    more = len(problems) - _MOST_PROBLEMS
    if more > 0:
        problems[_MOST_PROBLEMS:] = [f'and {more} more problems']
    raise exception.CloudFileError(path, problems)


def save(snapshot: Snapshot, path: str | os.PathLike[str]) -> None:
    """Write a cloud file, whole or not at all.

    :param snapshot: The cloud.
    :param path: The file; an existing one is replaced at the end.
    :raises CloudFileError: if it can not be written.
    """
    target = pathlib.Path(path)
    try:
        with tempfile.NamedTemporaryFile(
            'w',
            encoding='utf-8',
            dir=target.parent,
            prefix=f'.{target.name}.',
            delete=False,
        ) as unfinished:
            try:
                yaml.safe_dump(
                    cloud_document.from_snapshot(snapshot),
                    unfinished,
                    allow_unicode=True,
                    sort_keys=False,
                )
            except BaseException:
                pathlib.Path(unfinished.name).unlink()
                raise
        pathlib.Path(unfinished.name).replace(target)
    except OSError as exc:
        raise exception.CloudFileError(
            path, [f'can not be written: {exc.strerror or exc}']
        ) from exc


class _Loader(yaml.SafeLoader):
    """Refuses a key that is given twice, of which YAML would lose one."""

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f'the key {key!r} is given twice',
                    key_node.start_mark,
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _parse(path: str | os.PathLike[str]) -> Any:
    try:
        text = pathlib.Path(path).read_text(encoding='utf-8')
        # _Loader is a SafeLoader.
        return yaml.load(text, Loader=_Loader)  # noqa: S506
    except OSError as exc:
        problem = f'can not be read: {exc.strerror or exc}'
    except UnicodeDecodeError as exc:
        problem = f'is not UTF-8 text: {exc.reason} at byte {exc.start}'
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        where = (
            f'line {mark.line + 1}, column {mark.column + 1}: ' if mark else ''
        )
        problem = f'is not YAML: {where}{exc.problem}'
    except (yaml.YAMLError, TypeError, ValueError) as exc:
        problem = f'is not YAML: {exc}'
    raise exception.CloudFileError(path, [problem])


@functools.cache
def _validator() -> jsonschema.protocols.Validator:
    source = importlib.resources.files(__package__) / 'schema.yaml'
    schema = yaml.safe_load(source.read_text(encoding='utf-8'))
    return jsonschema.Draft202012Validator(schema)


def _explain(error: jsonschema.ValidationError) -> str:
    if error.validator == 'anyOf':
        return 'must be a total from 1 on, or a mapping with "total"'
    if error.validator == 'pattern' and error.schema.get(
        'pattern', ''
    ).endswith('{12}$'):
        return f'must be a uuid, not {error.instance!r}'
    return str(error.message)
