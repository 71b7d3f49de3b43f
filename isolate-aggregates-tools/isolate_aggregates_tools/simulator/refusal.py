# SPDX-License-Identifier: Apache-2.0
"""The errors for queries that Placement would not answer with 200."""

from collections.abc import Iterable

from isolate_aggregates import exception

# Placement's error codes. Most errors only have the undefined code.
UNDEFINED = 'placement.undefined_code'
BAD_VALUE = 'placement.query.bad_value'
DUPLICATE_KEY = 'placement.query.duplicate_key'
MISSING_VALUE = 'placement.query.missing_value'


class Refused(exception.BadQuery):
    """A query that Placement would answer with 400."""

    def __init__(self, reason: str, code: str = UNDEFINED) -> None:
        self.reason = reason
        self.code = code
        super().__init__(
            'Placement',
            None,
            f'would reject the request as invalid (400): {reason}',
        )


class Overflow(exception.ServiceFailed):
    """A query that Placement would answer with 500."""

    def __init__(self, amount: int) -> None:
        super().__init__(
            'Placement', None, f'cannot compare {amount} in its database.'
        )


def refuse(problems: Iterable[str], code: str = UNDEFINED) -> None:
    """Raise :class:`Refused` with all problems, if there are any."""
    reason = '; '.join(problems)
    if reason:
        raise Refused(reason, code)
