# SPDX-License-Identifier: Apache-2.0
"""Refuses requests that nova-api does not accept."""

from collections.abc import Iterator

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters.constraints import Cause
from isolate_aggregates.text import quoted
from isolate_aggregates.tools.mirrored import nova_api
from isolate_aggregates.tools.mirrored.mirror import Mirror, Remark, Settings
from isolate_aggregates.tools.request import Request


def acceptance(
    request: Request, aggregates: AggregateIndex, settings: Settings
) -> Iterator[Remark]:
    """Refuse flavors and images that nova-api refuses.

    An existing server was accepted when it was created.
    """
    if request.is_accepted:
        return
    refusals = list(nova_api.refusals(request))
    flavor = f'flavor {request.flavor.name}'
    if request.image is not None:
        subject = f'{flavor} with image {quoted(request.image.name)}'
    else:
        subject = flavor
        unsure = refusals
        refusals = [r for r in refusals if r.source is nova_api.Source.FLAVOR]
        if unsure and not refusals:
            yield Remark(
                Cause(
                    'image-decides',
                    f'whether nova-api accepts {flavor} with the image, which '
                    f'is not known: {_texts(unsure)}; specify the image with '
                    '--image',
                )
            )
    if refusals:
        raise exception.RequestUnacceptable(
            f'nova-api refuses {subject}: {_texts(refusals)}.'
        )


def _texts(refusals: list[nova_api.Refusal]) -> str:
    return '; '.join(refusal.text for refusal in refusals)


MIRRORS = (
    Mirror('nova_api', 'API._validate_flavor_image_nostatus', acceptance),
)
