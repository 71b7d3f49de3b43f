# SPDX-License-Identifier: Apache-2.0
"""What a change of a cloud does, known before it is made.

A change makes one snapshot of another; :func:`effect` compares what the other
commands answer for the two.
"""

from isolate_aggregates_tools.effect.effect import (
    AccessChange,
    Effect,
    LockChange,
    ProjectChange,
    effect,
)

__all__ = ['AccessChange', 'Effect', 'LockChange', 'ProjectChange', 'effect']
