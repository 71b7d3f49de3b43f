# SPDX-License-Identifier: Apache-2.0
"""Finds where a document violates a JSON schema."""

from collections.abc import Mapping
from typing import Any

from isolate_aggregates_tools.cloud.file.checked_yaml import (
    ENDLESS,
    Unreadable,
)
from isolate_aggregates_tools.cloud.file.schema_checks import Checks
from isolate_aggregates_tools.cloud.file.yaml_errors import Problem


class Checker:
    """Checks documents against a schema.

    :param schema: A schema of draft 2020-12.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._checks = Checks(schema)

    def violations(self, document: Any) -> list[Problem]:
        """Return where a document violates the schema.

        :raises Unreadable: if it contains itself.
        """
        try:
            if self._checks.of(self._schema)(document):
                return []
            from isolate_aggregates_tools.cloud.file import schema_errors

            return schema_errors.problems(
                self._schema, document, self._checks.of
            )
        except RecursionError:
            raise Unreadable(ENDLESS) from None
