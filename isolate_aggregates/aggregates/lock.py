# SPDX-License-Identifier: Apache-2.0
"""A lock: metadata of aggregates that keeps requests out."""

import dataclasses

from isolate_aggregates.aggregates.aggregate import Aggregate


@dataclasses.dataclass(frozen=True)
class Lock:
    """Aggregates that are forbidden together.

    :param family: The common prefix of the metadata keys of similar locks, for
        example ``trait:``.
    :param name: Its unique name, for example ``trait:CUSTOM_LICENSED`` or
        ``reservation:``.
    :param aggregates: The aggregates, at least one.
    """

    family: str
    name: str
    aggregates: tuple[Aggregate, ...]
