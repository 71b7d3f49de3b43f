# SPDX-License-Identifier: Apache-2.0
"""Phrases that the causes of several filters share."""

from isolate_aggregates.text import quoted


def lacking(flavor: str, image: str | None, verb: str) -> str:
    """Return that neither flavor nor image do something, as text.

    :param image: The name of the image; None if there is none or it does not
        count.
    """
    if image is None:
        return f'flavor {flavor} does not {verb}'
    return f'neither flavor {flavor} nor image {quoted(image)} {verb}s'
