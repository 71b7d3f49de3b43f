# SPDX-License-Identifier: Apache-2.0
"""What Placement answers to a query that it calls invalid."""

from collections.abc import Iterable

from isolate_aggregates import exception

# The service's codes for errors. Most have no code of their own.
UNDEFINED = 'placement.undefined_code'
BAD_VALUE = 'placement.query.bad_value'
DUPLICATE_KEY = 'placement.query.duplicate_key'
MISSING_VALUE = 'placement.query.missing_value'


class Refused(exception.BadQuery):
    """A query that the service answers with 400.

    :param reason: What is wrong with it.
    :param code: The service's code for that.
    """

    def __init__(self, reason: str, code: str = UNDEFINED) -> None:
        self.reason = reason
        self.code = code
        super().__init__(
            'Placement',
            None,
            f'would call the request invalid (400): {reason}',
        )


def refuse(problems: Iterable[str], code: str = UNDEFINED) -> None:
    """Raise if there are problems.

    :raises Refused: with all of them.
    """
    reason = '; '.join(problems)
    if reason:
        raise Refused(reason, code)
