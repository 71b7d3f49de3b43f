# SPDX-License-Identifier: Apache-2.0
"""Names who is let in or refused while a tool works, and not afterwards."""

from collections.abc import Callable, Iterator

from oslo_config import cfg

from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.advice.admitted import openings
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.effect import gaps
from isolate_aggregates_tools.effect.access_bounds import Bounds, Violation
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.rehearse.world import World

_KINDS: tuple[tuple[str, Callable[[Violation], frozenset[str]]], ...] = (
    ('may use', lambda each: each[1]),
    ('may not use', lambda each: each[2]),
)


def sentences(world: World, conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield what is open or shut only in between, and from which request."""
    steps = world.steps
    if len(steps) < 2:
        # There is nothing in between.
        return
    bounds = Bounds(
        world.before,
        [snapshot for _, snapshot in steps],
        chain.as_in_nova(conf),
        Requests(SnapshotCloud(world.before), conf),
    )
    state, previous = bounds.start, frozenset[str]()
    for number, (call, snapshot) in enumerate(steps[:-1], 1):
        state = bounds.after(state, snapshot)
        violations = list(bounds.violations(state))
        now = set[str]()
        for says, hosts_of in _KINDS:
            some = {each[0]: hosts_of(each) for each in violations}
            now |= {
                f'{gaps.servers(opening)} {says} '
                f'{ranges.folded(opening.hosts)}'
                for opening in openings({k: v for k, v in some.items() if v})
            }
        for sentence in sorted(now - previous):
            yield (
                f'Only in between, from request {number} of {len(steps)} '
                f'({call}) on, {sentence}.'
            )
        previous = frozenset(now)
