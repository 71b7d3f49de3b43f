# SPDX-License-Identifier: Apache-2.0
"""Says why requirements exclude a host that meets each by itself.

For example, in a tree one provider has the capacity and another the trait.
"""

from collections.abc import Iterator, Sequence

from isolate_aggregates.inspect.explain.host import HostProviders
from isolate_aggregates.inspect.explain.requirements import (
    Amount,
    Requirement,
    in_words,
)
from isolate_aggregates.placement.provider import Provider


def reason(conflict: Sequence[Requirement], host: HostProviders) -> str:
    """Say why a host does not meet some requirements together.

    :param conflict: The requirements; the host would meet them if any one of
        them were dropped.
    """
    suffixes = {requirement.suffix for requirement in conflict}
    told = host.told(_objections(conflict, host))
    if told and len(suffixes) == 1 and None not in suffixes:
        return f'{conflict[0].where}{_nobody(conflict)} everything: {told}'
    labels = [requirement.label for requirement in conflict]
    return '; '.join(
        [
            f'cannot be met together: {labels[0]}',
            *labels[1:],
            *_left(conflict, host),
        ]
    )


def _nobody(conflict: Sequence[Requirement]) -> str:
    """Say that no provider does, before what that is."""
    if conflict[0].suffix:
        return 'no one provider meets'
    classes = [c.resource_class for c in conflict if isinstance(c, Amount)]
    if len(classes) == 1:
        return f'no provider of {classes[0]} meets'
    of_these = f' of {", ".join(classes)}' if classes else ''
    return f'no providers{of_these} together meet'


def _objections(
    conflict: Sequence[Requirement], host: HostProviders
) -> Iterator[tuple[Provider, str]]:
    """Yield what there is against each provider that comes into question.

    Of the others there is nothing to learn: who has none of what is asked,
    and who meets no requirement at all.
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
    """Yield how much there is of what several groups ask for."""
    amounts = [c for c in conflict if isinstance(c, Amount)]
    classes = [amount.resource_class for amount in amounts]
    for resource_class in dict.fromkeys(classes):
        if classes.count(resource_class) > 1:
            left = [
                (provider, in_words(provider, resource_class))
                for provider in host.around
                if resource_class in provider.inventories
            ]
            yield f'{resource_class}: {host.told(left)}'
