# SPDX-License-Identifier: Apache-2.0
"""What is to change in a cloud, before it is changed."""

from collections.abc import Callable
import dataclasses


@dataclasses.dataclass(frozen=True)
class Step:
    """One change to make.

    :param what: What it does, such as ``add trait CUSTOM_A to host1``.
    :param make: Makes it; made once more it changes nothing.
    """

    what: str
    make: Callable[[], object]


@dataclasses.dataclass(frozen=True)
class Plan:
    """Changes that belong together.

    :param steps: The changes, in the order in which they are safe.
    :param traits: The traits it is about.
    :param notes: What is worth knowing, one sentence each.
    :param problems: What can not be done and why, one sentence each.
    """

    steps: tuple[Step, ...] = ()
    traits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
