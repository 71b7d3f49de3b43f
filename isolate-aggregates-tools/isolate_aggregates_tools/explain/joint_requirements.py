# SPDX-License-Identifier: Apache-2.0
"""Explains why a host meets each of some requirements, but not all at once.

For example, one provider of its tree has the capacity and another the trait.
"""

from collections.abc import Iterator, Sequence

from isolate_aggregates_tools.explain.host import HostProviders
from isolate_aggregates_tools.explain.requirements import (
    Amount,
    Requirement,
    in_words,
)
from isolate_aggregates_tools.placement.provider import Provider


def reason(conflict: Sequence[Requirement], host: HostProviders) -> str:
    """Return why a host does not meet some requirements together.

    :param conflict: The requirements. The host would meet the others if any
        one of them were dropped.
    """
    suffixes = {requirement.suffix for requirement in conflict}
    objections = host.in_words(_objections(conflict, host))
    if objections and len(suffixes) == 1 and None not in suffixes:
        return (
            f'{conflict[0].where}{_subject(conflict)} everything: {objections}'
        )
    labels = [requirement.label for requirement in conflict]
    return '; '.join(
        [
            f'cannot be met together: {labels[0]}',
            *labels[1:],
            *_left(conflict, host),
        ]
    )


def _subject(conflict: Sequence[Requirement]) -> str:
    """Return the start of a sentence that ends in what no provider meets."""
    if conflict[0].suffix:
        return 'no single provider meets'
    classes = [c.resource_class for c in conflict if isinstance(c, Amount)]
    if len(classes) == 1:
        return f'no provider of {classes[0]} meets'
    of_these = f' of {", ".join(classes)}' if classes else ''
    return f'no providers{of_these} together meet'


def _objections(
    conflict: Sequence[Requirement], host: HostProviders
) -> Iterator[tuple[Provider, str]]:
    """Yield the objections to each relevant provider.

    Providers without any of the requested resource classes, and providers that
    meet none of the requirements, are left out.
    """
    classes = {c.resource_class for c in conflict if isinstance(c, Amount)}
    for provider in host.around:
        if classes and not classes & provider.inventories.keys():
            continue
        texts = [
            text
            for requirement in conflict
            if (text := requirement.objection(provider, host))
        ]
        if 0 < len(texts) < len(conflict):
            yield provider, ', '.join(texts)


def _left(
    conflict: Sequence[Requirement], host: HostProviders
) -> Iterator[str]:
    """Yield the free capacity of classes that several groups request."""
    amounts = [c for c in conflict if isinstance(c, Amount)]
    classes = [amount.resource_class for amount in amounts]
    for resource_class in dict.fromkeys(classes):
        if classes.count(resource_class) > 1:
            capacities = [
                (provider, in_words(provider, resource_class))
                for provider in host.around
                if resource_class in provider.inventories
            ]
            yield f'{resource_class}: {host.in_words(capacities)}'
