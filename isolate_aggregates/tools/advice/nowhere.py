# SPDX-License-Identifier: Apache-2.0
"""Says which flavors no host could ever take.

The cloud is asked with every host empty, enabled and up. A flavor for which an
image or a project opens a host is not among them, nor is one that only lacks
the keys to the hosts: that may be what the locks are for.
"""

from collections.abc import Iterator
import dataclasses
import itertools

import os_traits

from isolate_aggregates.request import Flavor
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.tools.advice.causes import Causes, NoHost
from isolate_aggregates.tools.advice.spelling.flavors import (
    groups_without_resources,
)
from isolate_aggregates.tools.answers import scope
from isolate_aggregates.tools.answers.deciding import Questions
from isolate_aggregates.tools.answers.offers import Offers
from isolate_aggregates.tools.answers.requests import Requests
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.placement.group import ResourceRequest


class Nowhere:
    """The flavors of a cloud that no host could ever take.

    :param causes: Finds why requests have no host in the cloud.
    :param requests: Builds the requests of servers.
    """

    def __init__(self, causes: Causes, requests: Requests) -> None:
        snapshot, pipeline = causes.snapshot, causes.pipeline
        everywhere = _enabled(snapshot, causes.traits)
        self._causes = causes
        self._requests = requests
        self._questions = Questions(everywhere, pipeline, requests)
        self._offers = Offers(everywhere, before=Offers(snapshot))
        self._others = tuple(
            itertools.product(
                scope.images(everywhere, pipeline),
                scope.projects(everywhere.aggregates, pipeline),
            )
        )
        self._classes = frozenset[str]().union(
            *(provider.inventories for provider in snapshot.providers)
        )

    def why(self, flavor: Flavor) -> NoHost | None:
        """Return why no host could take a flavor; None if one could."""
        if (
            self._has_host(flavor)
            # The reservation of the flavor has ended.
            or xs.reservation_classes(flavor.extra_specs) - self._classes
            # These are found as misspelled.
            or groups_without_resources(flavor)
        ):
            return None
        return next(self._reasons(flavor), None)

    def _has_host(self, flavor: Flavor) -> bool:
        """Return whether some servers of a flavor have a host."""
        return any(
            self._offers.usable(self._questions.of(flavor, image, project))
            for image, project in self._others
        )

    def _reasons(self, flavor: Flavor) -> Iterator[NoHost]:
        """Yield why a flavor has no host, the most specific reason first."""
        question = self._questions.of(flavor, None, None)
        request = self._requests.new(flavor)
        if question is None or self._offers.nodes(
            map(_unlocked, question.queries)
        ):
            # Refused for another reason, or locked out.
            yield from self._causes.of_metadata(request, flavor)
            return
        [query, *_] = question.queries
        yield from self._causes.of(request, query, flavor)
        yield self._causes.together(query)


def _unlocked(query: ResourceRequest) -> ResourceRequest:
    return dataclasses.replace(
        query,
        groups={
            suffix: dataclasses.replace(
                group, aggregates=[], forbidden_aggregates=set()
            )
            for suffix, group in query.groups.items()
        },
    )


def _enabled(snapshot: Snapshot, traits: frozenset[str] | None) -> Snapshot:
    disabled = {os_traits.COMPUTE_STATUS_DISABLED}
    return dataclasses.replace(
        snapshot,
        services=None,
        traits=snapshot.traits | (traits or frozenset()),
        providers=tuple(
            each
            if disabled.isdisjoint(each.traits)
            else dataclasses.replace(each, traits=each.traits - disabled)
            for each in snapshot.providers
        ),
    )
