# SPDX-License-Identifier: Apache-2.0
"""Carries out single actions in Nova and Placement.

Commands and Blazar's plugins do what they do to a reservation by these: both
keep slots, extra specs and access alike. What changes the record of a
reservation is in ``execution``, and of one of Blazar's in ``blazar.backend``.
"""

from collections.abc import Iterable
import contextlib

from isolate_aggregates import exception, text
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

    def finish(self, providers: Iterable[str]) -> str | None:
        """End the reservation as far as possible now; call again for the rest.

        First, access is revoked and slots are closed, so that no server can be
        booted. Then the servers are deleted. When none is left, slots and
        resource class are deleted, and last, by the caller, the flavor:
        servers without an allocation, for example shelved ones, can only be
        found by their flavor.

        :param providers: The uuids of the reservation providers with its
            slots.
        :returns: What has to finish first, as a sentence; None if only the
            flavor is left.
        """
        compute, placement = self._store.compute, self._store.placement
        providers = list(providers)
        compute.revoke(self._id)
        self._change(providers, slots.closed)
        holders = slots.holders(
            placement, providers, names.resource_class(self._id)
        )
        servers = set(compute.servers_of(self._id))
        for server in sorted(servers):
            compute.delete_server(server)
        # Soft-deleted servers are not in Nova's list, but have allocations.
        others = {
            holder
            for holder in sorted(holders - servers)
            if not compute.delete_for_good(holder)
        }
        if others:
            # The other consumers are migrations: servers that were resized to
            # another flavor hold their slot until the resize is confirmed.
            compute.confirm_resizes(others)
        if number := len(servers | holders):
            are = text.plural(number, 'is', 'are')
            return f'{text.counted(number, "server")} {are} being deleted'
        self.remove(providers)
        return None

    def remove(self, providers: Iterable[str]) -> None:
        """Delete slots and resource class, if there are no servers."""
        self._change(providers, slots.gone)
        inventories.delete_class(
            self._store.placement, names.resource_class(self._id)
        )

    def _change(self, providers: Iterable[str], new: slots.Edit) -> None:
        for provider in providers:
            slots.change(
                self._store.placement,
                provider,
                names.resource_class(self._id),
                new,
            )

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
