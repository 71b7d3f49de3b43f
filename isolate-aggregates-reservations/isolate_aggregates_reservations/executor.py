# SPDX-License-Identifier: Apache-2.0
"""Carries out single actions in Nova and Placement.

Commands and Blazar's plugins do what they do to a reservation by these: both
keep slots, extra specs and access alike. What changes the record of a
reservation is in ``execution``, and of one of Blazar's in ``blazar.backend``.
"""

from collections.abc import Collection, Iterable, Mapping
import contextlib
import dataclasses
from functools import partial

from isolate_aggregates import exception, text
from isolate_aggregates_reservations import names, slots
from isolate_aggregates_reservations.actions import (
    Action,
    DeleteRevisions,
    Grant,
    Revoke,
    SwitchSlots,
    WriteExtraSpecs,
    WriteSlots,
)
from isolate_aggregates_reservations.parts import clause, tried
from isolate_aggregates_reservations.state import ObservedState
from isolate_aggregates_reservations.store import ReservationStore
from isolate_aggregates_tools.placement import inventories


@dataclasses.dataclass(frozen=True)
class Waiting:
    """What has to finish before a reservation is over.

    :param what: A sentence without a full stop.
    :param providers: The uuids of the providers that keep its slots.
    """

    what: str
    providers: frozenset[str]


def _deleted(holders: set[str], servers: set[str]) -> str:
    """Return which servers of a reservation are being deleted.

    :param holders: Those that hold a slot, also if Nova does not list them.
    :param servers: Those that Nova lists. What found no host, or was shelved,
        has no slot.
    """
    without = len(servers - holders)
    if not without and not holders:
        return 'its end is not complete'
    if not without:
        number = len(holders)
        are = text.plural(number, 'is', 'are')
        return f'{text.counted(number, "server")} {are} being deleted'
    are = text.plural(without + len(holders), 'is', 'are')
    more = f'{text.counted(without, "server")} without a slot'
    if holders:
        more = f'{text.counted(len(holders), "server")} and {more}'
    return f'{more} {are} being deleted'


class Executor:
    """Carries out the actions for one reservation.

    :param reservation: Its id.
    """

    def __init__(self, store: ReservationStore, reservation: str) -> None:
        self._store = store
        self._id = reservation
        self._created_class = False
        # What could not be done for a project, a server or a provider, as the
        # predicates of sentences. It stops nothing else.
        self.failed: list[str] = []

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
                self._grant(action.projects, state)
            case Revoke():
                compute.revoke(self._id)
        return action.after(state)

    def _grant(self, projects: Collection[str], state: ObservedState) -> None:
        """Give projects access; raise if none has it after that."""
        failed = tried(
            sorted(projects), partial(self._store.compute.grant, self._id)
        )
        has_none = len(failed) == len(projects) and not state.access.get(
            self._id
        )
        for error in failed.values():
            if has_none or isinstance(error, exception.ServiceNotFound):
                raise error
        self._note('project {} gets no access to its flavor', failed)

    def _note(
        self,
        what: str,
        failed: Mapping[str, exception.IsolateAggregatesError],
    ) -> None:
        self.failed += [
            f'{what.format(part)}: {clause(error)}'
            for part, error in failed.items()
        ]

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

    def finish(self, providers: Iterable[str]) -> Waiting | None:
        """End the reservation as far as possible now; call again for the rest.

        First, access is revoked and slots are closed, so that no server can be
        booted. Then the servers are deleted, and the slots on hosts where none
        is left. At last the resource class is deleted, and by the caller the
        flavor: servers without an allocation, for example shelved ones, can
        only be found by their flavor.

        :param providers: The uuids of the reservation providers with its
            slots.
        :returns: What has to finish first; None if only the flavor is left.
        """
        compute, placement = self._store.compute, self._store.placement
        providers = list(providers)
        self._note(
            'project {} keeps access to its flavor',
            tried(
                compute.projects(self._id), partial(compute.revoke, self._id)
            ),
        )
        # If they cannot be closed, a server may come after those deleted here;
        # it is found by the next run, as long as the flavor exists.
        open_still = tried(providers, partial(self._edit, new=slots.closed))
        self._note('the slots of provider {} stay open', open_still)
        resource_class = names.resource_class(self._id)
        holders_of = {
            provider: slots.holders(placement, [provider], resource_class)
            for provider in providers
        }
        holders = set().union(*holders_of.values())
        servers = set(compute.servers_of(self._id))
        kept = tried(sorted(servers), compute.delete_server)
        # Soft-deleted servers are not in Nova's list, but have allocations.
        others: set[str] = set()

        def delete_for_good(holder: str) -> None:
            if not compute.delete_for_good(holder):
                others.add(holder)

        kept |= tried(sorted(holders - servers), delete_for_good)
        self._note('Nova does not delete server {}', kept)
        if others:
            # The other consumers are migrations: servers that were resized to
            # another flavor hold their slot until the resize is confirmed.
            self._note(
                'Nova does not confirm the resize of server {}',
                tried(compute.resized(others), compute.confirm_resize),
            )
        used = {name for name, some in holders_of.items() if some}
        number = len(servers | holders)
        if not number and not open_still:
            self.remove(providers)
            return None
        freed = tried(
            [name for name in providers if name not in used | {*open_still}],
            partial(self._edit, new=slots.gone),
        )
        self._note('the slots of provider {} stay', freed)
        what = _deleted(holders - kept.keys(), servers - kept.keys())
        return Waiting(what, frozenset({*used, *open_still, *freed}))

    def remove(self, providers: Iterable[str]) -> None:
        """Delete slots and resource class, if there are no servers."""
        self._change(providers, slots.gone)
        inventories.delete_class(
            self._store.placement, names.resource_class(self._id)
        )

    def _change(self, providers: Iterable[str], new: slots.Edit) -> None:
        for provider in providers:
            self._edit(provider, new)

    def _edit(self, provider: str, new: slots.Edit) -> None:
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
