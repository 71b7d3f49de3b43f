# SPDX-License-Identifier: Apache-2.0
"""Metrics of reservations."""

from collections.abc import Iterator

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from isolate_aggregates_tools.reservation_review import Review

_PREFIX = 'isolate_aggregates'


def families(review: Review | None) -> Iterator[Metric]:
    """Yield the metrics of reservations, and whether they could be read.

    :param review: None if they could not be read.
    """
    yield GaugeMetricFamily(
        f'{_PREFIX}_reservations_up',
        'Whether the reservations could be read.',
        float(review is not None),
    )
    if review is None:
        return
    for name, meaning, label, numbers in (
        ('reservations', 'Reservations by state.', 'state', review.states),
        (
            'reservations_late',
            'Reservations whose start or end was not reconciled for minutes.',
            'event',
            {event: len(due) for event, due in review.missed.items()},
        ),
        (
            'reservation_unusable_slots',
            'Slots of reservations that no server can use, by cause.',
            'cause',
            review.unusable_slots,
        ),
    ):
        family = GaugeMetricFamily(
            f'{_PREFIX}_{name}', meaning, labels=[label]
        )
        for value, number in numbers.items():
            family.add_metric([value], number)
        yield family
    yield GaugeMetricFamily(
        f'{_PREFIX}_reservation_oversold_slots',
        'Servers of reservations for which there is no slot.',
        review.oversold_slots,
    )
    yield GaugeMetricFamily(
        f'{_PREFIX}_reservations_unreadable',
        'Reservations whose record is lost or broken.',
        len(review.unreadable),
    )
