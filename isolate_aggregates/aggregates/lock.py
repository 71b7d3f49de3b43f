# SPDX-License-Identifier: Apache-2.0
"""A lock: what aggregates have in common that keeps requests out."""

import dataclasses

from isolate_aggregates.aggregates.aggregate import Aggregate


@dataclasses.dataclass(frozen=True)
class Lock:
    """Aggregates that are forbidden together.

    :param family: What the locks of one kind have in common: the prefix of
        their metadata keys, such as ``trait:``.
    :param name: Its canonical name, such as ``trait:CUSTOM_LICENSED`` or
        ``reservation:``; no other lock has the same.
    :param aggregates: The aggregates, at least one.
    """

    family: str
    name: str
    aggregates: tuple[Aggregate, ...]
