# SPDX-License-Identifier: Apache-2.0
"""Which servers nova-api refuses to move.

Repeats what ``evacuate``, ``live_migrate``, ``resize`` and ``shelve`` of
``nova.compute.api`` check before anything else, in releases 31 to 34. An
administrator asks, and all compute services run the release.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import enum
import sys

from isolate_aggregates_tools.compute.servers import Server
from isolate_aggregates_tools.request import implied


class MoveKind(enum.Enum):
    """What can be done with a server, in words."""

    EVACUATE = 'evacuate'
    LIVE = 'live-migrate'
    COLD = 'cold-migrate'
    SHELVE = 'shelve'


# The statuses in which a server is accepted. Evacuation does not look at the
# task of a server, so that some statuses of a task are among them; a server
# that is MIGRATING may also be paused, in which case it is refused.
STATUSES = {
    MoveKind.EVACUATE: frozenset(
        {
            *('ACTIVE', 'SHUTOFF', 'ERROR', 'REBOOT', 'HARD_REBOOT'),
            *('PASSWORD', 'REBUILD', 'RESIZE', 'MIGRATING'),
        }
    ),
    MoveKind.LIVE: frozenset({'ACTIVE', 'PAUSED'}),
    MoveKind.COLD: frozenset({'ACTIVE', 'SHUTOFF'}),
    MoveKind.SHELVE: frozenset({'ACTIVE', 'SHUTOFF', 'PAUSED', 'SUSPENDED'}),
}

_ALL = sys.maxsize


@dataclasses.dataclass(frozen=True)
class _Gate:
    """A property of servers for which Nova refuses actions.

    :param reason: The property, without a full stop.
    :param until: The last release that refuses each action.
    """

    reason: str
    applies: Callable[[Server, implied.Settings], bool]
    until: Mapping[MoveKind, int]


def _has_shares(server: Server, settings: implied.Settings) -> bool:
    return bool(server.has_shares)


def _has_port_accelerators(server: Server, settings: implied.Settings) -> bool:
    return any(port.accelerator for port in server.ports or ())


def _has_accelerators(server: Server, settings: implied.Settings) -> bool:
    return settings.flavor('accel:device_profile') is not None


def _has_tpm(server: Server, settings: implied.Settings) -> bool:
    name = 'hw:tpm_version'
    return bool(settings.flavor(name) or settings.image(name))


def _has_bound_tpm(server: Server, settings: implied.Settings) -> bool:
    security = settings.flavor('hw:tpm_secret_security')
    return _has_tpm(server, settings) and security != 'host'


def _has_encrypted_memory(server: Server, settings: implied.Settings) -> bool:
    name = 'hw:mem_encryption'
    return implied.is_true(settings.flavor(name)) or implied.is_true(
        settings.image(name)
    )


_GATES = (
    _Gate(
        'it has a Manila share',
        _has_shares,
        {
            MoveKind.EVACUATE: _ALL,
            MoveKind.LIVE: _ALL,
            MoveKind.COLD: 33,
            MoveKind.SHELVE: _ALL,
        },
    ),
    _Gate(
        'it has a port with an accelerator',
        _has_port_accelerators,
        dict.fromkeys(MoveKind, _ALL),
    ),
    _Gate(
        'it has an accelerator',
        _has_accelerators,
        {MoveKind.LIVE: _ALL, MoveKind.COLD: _ALL},
    ),
    _Gate(
        'it has a virtual TPM',
        _has_tpm,
        {MoveKind.EVACUATE: _ALL, MoveKind.LIVE: 32, MoveKind.SHELVE: _ALL},
    ),
    _Gate(
        'the secret of its virtual TPM is not kept by its host '
        '(hw:tpm_secret_security=host)',
        _has_bound_tpm,
        {MoveKind.LIVE: _ALL},
    ),
    _Gate(
        'its memory is encrypted', _has_encrypted_memory, {MoveKind.LIVE: _ALL}
    ),
)


def refusals(
    action: MoveKind,
    server: Server,
    properties: Mapping[str, str],
    releases: Sequence[int],
    is_up: bool = True,
) -> Iterator[str]:
    """Yield why Nova refuses to move a server, without full stops.

    :param properties: The properties of the server's image.
    :param releases: The possible releases of Nova, of which one may refuse.
    :param is_up: Whether the compute service of its host is up.
    """
    settings = implied.Settings(
        server.flavor.extra_specs if server.flavor else {}, properties
    )
    oldest = min(releases, default=implied.NEWEST_NOVA)
    for gate in _GATES:
        if oldest <= gate.until.get(action, 0) and gate.applies(
            server, settings
        ):
            yield gate.reason
    if server.status not in STATUSES[action]:
        yield f'it is {server.status}'
    if is_up and action is MoveKind.EVACUATE:
        yield 'the compute service of its host is up'
    if not is_up and action in (MoveKind.LIVE, MoveKind.COLD):
        yield 'the compute service of its host is down, so evacuate it'
