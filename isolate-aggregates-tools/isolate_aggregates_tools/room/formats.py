# SPDX-License-Identifier: Apache-2.0
"""Writes plans for other programs."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from isolate_aggregates.text import quoted
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.room.task import Move

Rounds = Sequence[Sequence[Move]]


def sentence(move: Move) -> str:
    """Return a move as a change to be confirmed."""
    how = 'live-migrate' if move.live else 'cold-migrate'
    return (
        f'{how} server {quoted(move.server.name)} ({move.server.id}) from '
        f'{move.source} to {move.target}'
    )


def as_commands(rounds: Rounds) -> Iterator[str]:
    """Yield the commands of the openstack client that make the moves.

    Each waits for its end, so they can be run one after the other.
    """
    for moves in rounds:
        for move in moves:
            yield commands.shown(
                commands.migrate(move.server.id, move.live, move.target)
            )


def as_watcher(rounds: Rounds) -> Iterator[str]:
    """Yield commands that let OpenStack Watcher make the moves.

    Watcher takes no action plan that it has not computed itself, but its
    strategy ``actuator`` computes one of just the given actions. It runs
    migrations at the same time, so there is an audit for each round: run the
    next when the action plan of the last has succeeded. See `Actuator
    <https://docs.openstack.org/watcher/latest/strategies/actuation.html>`_.
    """
    for moves in rounds:
        actions = [
            {
                'action_type': 'migrate',
                'resource_id': move.server.id,
                'input_parameters': {
                    'migration_type': 'live' if move.live else 'cold',
                    'source_node': move.source,
                    'destination_node': move.target,
                },
            }
            for move in moves
        ]
        yield commands.shown(commands.run_watcher_actions(actions))


FORMATS: Mapping[str, Callable[[Rounds], Iterator[str]]] = {
    'commands': as_commands,
    'watcher': as_watcher,
}
