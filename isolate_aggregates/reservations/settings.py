# SPDX-License-Identifier: Apache-2.0
"""Numbers in the metadata of the pool, where all machines read the same."""

from isolate_aggregates import text
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.tools import errors


def number(
    pool: Aggregate | None, key: str, unit: str, most: int, example: int
) -> int | None:
    """Return a number; None if the pool does not have it.

    :param unit: What is counted, in the plural.
    :param example: A value for the advice in the error.
    :raises InvalidRequest: if the metadata is invalid.
    """
    if pool is None or key not in pool.metadata:
        return None
    value = pool.metadata[key].strip()
    if not (value.isdecimal() and int(value) <= most):
        raise errors.InvalidRequest(
            f'Aggregate {pool.name}: {key} must be a number of {unit} from 0 '
            f'to {most}, not "{text.escaped(value)}"; set it with "openstack '
            f'aggregate set --property {key}={example} {pool.name}".'
        )
    return int(value)
