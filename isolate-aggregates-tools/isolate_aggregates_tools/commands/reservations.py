# SPDX-License-Identifier: Apache-2.0
"""What other commands show of reservations.

Reservations are a distribution of their own, which may not be installed: their
commands are loaded by name.
"""

from collections.abc import Collection
import dataclasses
import datetime
from typing import Any

from isolate_aggregates import entry_points
from isolate_aggregates.request.extra_specs import RESERVATION_CLASS, parse
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.cli import base
from isolate_aggregates_tools.cloud.snapshot import Snapshot

_COMMANDS = 'isolate_aggregates.cli'
_REVIEW = 'reservation_list'


def command(name: str) -> Any:
    """Return the class of a command about reservations.

    :raises InvalidRequest: if their distribution is not installed.
    """
    if name not in _installed():
        raise _unknown(name, '')
    [plugin] = entry_points.load(_COMMANDS, [name], _unknown).values()
    return plugin


def _installed() -> Collection[str]:
    """Return the names of the entry points of all installed commands."""
    return {each.name for each in entry_points.installed(_COMMANDS)}


def with_review(
    app: base.Program, cloud: AuditedCloud, is_thorough: bool = False
) -> AuditedCloud:
    """Return a live cloud with a review of its reservations.

    A cloud that cannot have any needs no distribution that reads them.

    :param is_thorough: Whether to read what takes a call for each host.
    :raises InvalidRequest: if the cloud may have reservations, and what reads
        them is not installed.
    """
    if not may_exist(cloud.snapshot) and _REVIEW not in _installed():
        return cloud
    review = command(_REVIEW).review(
        app.conf,
        app.connect(),
        datetime.datetime.now(datetime.UTC),
        may_exist(cloud.snapshot),
        is_thorough,
    )
    return dataclasses.replace(cloud, reservations=review)


def may_exist(snapshot: Snapshot) -> bool:
    """Return whether a cloud may have reservations.

    Each host that is enabled for reservations has a unit of such a class, and
    so has each slot. If all of these are gone, there are still the records,
    which are flavors that request one.
    """
    return any(
        resource_class.startswith(RESERVATION_CLASS)
        for provider in snapshot.providers
        for resource_class in provider.inventories
    ) or any(
        spec.name.startswith(RESERVATION_CLASS)
        for flavor in snapshot.flavors
        for spec in parse(flavor.extra_specs)
    )


def _unknown(name: str, problem: str) -> errors.InvalidRequest:
    return errors.InvalidRequest(
        'Reservations are read by the distribution '
        'isolate-aggregates-reservations, which is not installed here: '
        'install it beside isolate-aggregates-tools.'
    )
