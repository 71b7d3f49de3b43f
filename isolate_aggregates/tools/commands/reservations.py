# SPDX-License-Identifier: Apache-2.0
"""What other commands show of reservations.

Reservations are a wing of their own, which this one does not import: their
commands are loaded by name.
"""

import dataclasses
import datetime
from typing import Any

from isolate_aggregates import entry_points
from isolate_aggregates.request.extra_specs import RESERVATION_CLASS, parse
from isolate_aggregates.tools import errors
from isolate_aggregates.tools.audit import AuditedCloud
from isolate_aggregates.tools.cli import base
from isolate_aggregates.tools.cloud.snapshot import Snapshot


def command(name: str) -> Any:
    """Return the class of a command about reservations."""
    [plugin] = entry_points.load(
        'isolate_aggregates.cli', [name], _unknown
    ).values()
    return plugin


def with_review(
    app: base.Program, cloud: AuditedCloud, is_thorough: bool = False
) -> AuditedCloud:
    """Return a live cloud with a review of its reservations.

    :param is_thorough: Whether to read what takes a call for each host.
    """
    review = command('reservation_list').review(
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
    return errors.InvalidRequest(f'The command {name} {problem}')
