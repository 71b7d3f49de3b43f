# SPDX-License-Identifier: Apache-2.0
"""Reads and writes cloud files, which describe a cloud in YAML."""

import contextlib
import functools
import importlib.resources
import os
import re
from typing import Any

import jsonschema
import yaml

from isolate_aggregates import exception, files
from isolate_aggregates.tools.cloud.file import (
    checked_yaml,
    serialize,
    yaml_errors,
)
from isolate_aggregates.tools.cloud.file import document as cloud_document
from isolate_aggregates.tools.cloud.snapshot import Snapshot

_RARE_BREAK = re.compile('[\x85\u2028\u2029]')


def load(path: str | os.PathLike[str]) -> Snapshot:
    """Read a cloud file.

    :raises CloudFileError: if it cannot be read or is invalid. The message has
        the file, the problems and their places.
    """
    try:
        return _load(path, checked_yaml.text_of(path))
    except checked_yaml.Unreadable as exc:
        raise exception.CloudFileError(path, of_file=str(exc)) from None


def _load(path: str | os.PathLike[str], text: str) -> Snapshot:
    with contextlib.suppress(
        yaml.YAMLError,
        ValueError,
        RecursionError,
        cloud_document.Contradictions,
    ):
        _, document = checked_yaml.loaded(text, _FastLoader)
        if document is not None and not (
            checked_yaml.violations(document, _validator())
        ):
            return cloud_document.to_snapshot(document, str(path))
    # Now to say what is wrong, and where.
    root, document = checked_yaml.parse(text)
    violations = checked_yaml.violations(document, _validator())
    if not violations:
        try:
            return cloud_document.to_snapshot(document, str(path))
        except cloud_document.Contradictions as exc:
            violations = list(exc.problems)
    raise exception.CloudFileError(
        path, yaml_errors.messages(violations, root)
    )


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
        keys = [
            key.value
            for key, _ in node.value
            if key.tag in checked_yaml.KEY_TAGS
        ]
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


@functools.cache
def _validator() -> jsonschema.protocols.Validator:
    source = importlib.resources.files(__package__) / 'schema.yaml'
    return checked_yaml.validator(
        yaml.safe_load(source.read_text(encoding='utf-8'))
    )
