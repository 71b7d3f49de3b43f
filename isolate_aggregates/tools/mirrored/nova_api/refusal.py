# SPDX-License-Identifier: Apache-2.0
"""Why nova-api refuses a flavor and an image."""

import enum


class Source(enum.IntEnum):
    """What has to be changed to avoid a refusal."""

    FLAVOR = 1
    IMAGE = 2
    # Another flavor or another image can avoid it.
    EITHER = 3


class Refusal(Exception):
    """Nova-api refuses a flavor, an image or their combination.

    :param text: What is wrong and how to correct it, without a full stop.
    """

    def __init__(self, source: Source, text: str) -> None:
        self.source = source
        self.text = text
        super().__init__(text)


def of_flavor(text: str) -> Refusal:
    """Return a refusal of a flavor, whatever the image."""
    return Refusal(Source.FLAVOR, text)


def of_image(text: str) -> Refusal:
    """Return a refusal of an image, whatever the flavor."""
    return Refusal(Source.IMAGE, text)


def of_either(text: str) -> Refusal:
    """Return a refusal of a combination."""
    return Refusal(Source.EITHER, text)
