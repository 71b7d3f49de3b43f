# SPDX-License-Identifier: Apache-2.0
"""A second bill of reservations, of what was ordered and what Placement had.

It shares no code with the package. An accountant writes down what a customer
ordered, and reads the meters whenever something has happened: what Placement
offers, and which hosts are up. A bill then looks at each quarter of an hour.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Order:
    """What a customer has, until the next order for the same reservation.

    :param start: The start, in quarters of an hour like all times here.
    :param end: The end; None for no end.
    :param warning: How long before the end no server can be booted any more.
    :param is_lost: Whether its flavor was deleted, so that no end is carried
        out.
    :param last_up: The hosts that were up then, as nothing more is written
        down about them.
    """

    start: int
    end: int | None
    amount: int
    warning: int = 0
    is_lost: bool = False
    last_up: frozenset | None = None


@dataclasses.dataclass
class Accountant:
    """Writes down orders and readings, and bills them."""

    orders: dict[str, list[tuple[int, Order]]] = dataclasses.field(
        default_factory=dict
    )
    readings: list[tuple[int, dict, frozenset]] = dataclasses.field(
        default_factory=list
    )

    def order(self, name: str, time: int, order: Order) -> None:
        """Write down what a reservation is from a time on."""
        self.orders.setdefault(name, []).append((time, order))

    def current(self, name: str) -> Order:
        """Return the last order for a reservation."""
        return self.orders[name][-1][1]

    def read(self, time: int, inventories: dict, up: frozenset) -> None:
        """Read the meters.

        :param inventories: Inventories of resource classes as Placement's API
            shows them, by host.
        :param up: The names of the hosts that are up.
        """
        self.readings.append((time, inventories, up))

    def bill(self, name: str, since: int, until: int) -> tuple[int, int, int]:
        """Return the quarters of slots sold, open and usable in a period."""
        sold = is_open = usable = 0
        for time in range(since, until):
            orders = [o for at, o in self.orders[name] if at <= time]
            readings = [(i, up) for at, i, up in self.readings if at <= time]
            if not orders or not readings:
                continue
            order = orders[-1]
            is_over = order.end is not None and time >= order.end
            reserved = order.amount
            if is_over or time < order.start:
                reserved = 0
            inventories, up = readings[-1]
            if order.last_up is not None:
                up = order.last_up
            offered = {
                host: _offered(classes, name)
                for host, classes in inventories.items()
            }
            if is_over and order.is_lost:
                offered = {}
            sold += reserved
            usable += min(
                reserved, sum(n for host, n in offered.items() if host in up)
            )
            last_call = order.end is not None and order.end - order.warning
            if not (order.warning and last_call and time >= last_call):
                is_open += sum(offered.values())
        return sold, is_open, usable


def _offered(classes: dict, name: str) -> int:
    """Return how many slots of a reservation Placement offers on a host."""
    class_name = 'CUSTOM_RESERVATION_' + name.replace('-', '_').upper()
    inventory = classes.get(class_name)
    if inventory is None or inventory['min_unit'] > inventory['max_unit']:
        return 0
    return inventory['total'] - inventory['reserved']
