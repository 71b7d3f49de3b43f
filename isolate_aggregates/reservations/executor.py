# SPDX-License-Identifier: Apache-2.0
"""Carries out single actions in Nova and Placement.

Commands and Blazar's plugins do what they do to a reservation by these: both
keep slots, extra specs and access alike. What changes the record of a
reservation is in ``execution``, and of one of Blazar's in ``blazar.backend``.
"""

import contextlib

from isolate_aggregates import exception
from isolate_aggregates.reservations import names, slots
from isolate_aggregates.reservations.actions import (
    Action,
    DeleteRevisions,
    Grant,
    Revoke,
    SwitchSlots,
    WriteExtraSpecs,
    WriteSlots,
)
from isolate_aggregates.reservations.state import ObservedState
from isolate_aggregates.reservations.store import ReservationStore
from isolate_aggregates.tools.placement import inventories


class Executor:
    """Carries out the actions for one reservation.

    :param reservation: Its id.
    """

    def __init__(self, store: ReservationStore, reservation: str) -> None:
        self._store = store
        self._id = reservation
        self._created_class = False

    def carry_out(
        self, action: Action, state: ObservedState, change: int = 0
    ) -> ObservedState:
        """Carry out an action; return the state after it.

        :param change: The number of the change that slots are written for.
        :raises ServiceConflict: if the state is not current any more.
        """
        compute = self._store.compute
        match action:
            case DeleteRevisions():
                for flavor in action.flavors:
                    compute.delete_flavor(flavor)
            case WriteExtraSpecs():
                self._create_class()
                compute.set_extra_specs(
                    action.flavor, action.flavor.extra_specs
                )
            case WriteSlots():
                return self._write_slots(action, state, change)
            case SwitchSlots():
                return self._switch_slots(action, state, change)
            case Grant():
                for project in sorted(action.projects):
                    compute.grant(self._id, project)
            case Revoke():
                compute.revoke(self._id)
        return action.after(state)

    def _write_slots(
        self, action: WriteSlots, state: ObservedState, change: int
    ) -> ObservedState:
        host = state.hosts[action.host]
        if host.provider is None:
            return action.after(state)
        resource_class = names.resource_class(self._id)
        try:
            generation = slots.write(
                self._store.placement,
                host.provider,
                resource_class,
                action.slots,
                host.generation,
                change,
            )
        except exception.BadQuery as exc:
            if self._store.compute.record(self._id) is not None:
                self._create_class()
            raise exception.ServiceConflict(
                'Placement',
                None,
                f'has no resource class {resource_class}; run the command '
                'again.',
            ) from exc
        return state.with_slots(
            action.host, self._id, action.slots, generation
        )

    def _switch_slots(
        self, action: SwitchSlots, state: ObservedState, change: int
    ) -> ObservedState:
        if not (action.is_open or action.before.used):
            return self._write_slots(action.written, state, change)
        provider = state.hosts[action.host].provider
        if provider:
            slots.change(
                self._store.placement,
                provider,
                names.resource_class(self._id),
                slots.opened_from(action.before)
                if action.is_open
                else slots.closed,
            )
        return action.after(state)

    def _create_class(self) -> None:
        inventories.create_class(
            self._store.placement, names.resource_class(self._id)
        )
        self._created_class = True

    def delete_class(self) -> None:
        """Delete the class if this created it for an ended reservation."""
        if self._created_class:
            with contextlib.suppress(exception.ServiceConflict):
                inventories.delete_class(
                    self._store.placement, names.resource_class(self._id)
                )
