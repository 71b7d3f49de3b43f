# SPDX-License-Identifier: Apache-2.0
"""Says which flavors and images no host could ever take.

The cloud is asked with every host empty, enabled and up. A flavor for which an
image or a project opens a host is not among them, nor is one that has
no key to the hosts: that may be what the locks are for.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import itertools
from typing import Any

import os_traits

from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import listed, named, quoted
from isolate_aggregates_tools.answers import scope
from isolate_aggregates_tools.answers.deciding import Questions
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.answers.requests import Requests
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.diagnosis.causes import Causes, NoHost
from isolate_aggregates_tools.diagnosis.spelling.flavors import (
    groups_without_resources,
)
from isolate_aggregates_tools.mirrored import nova_api
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.repair import Repair
from isolate_aggregates_tools.request import Request, constraints
from isolate_aggregates_tools.request.constraints import Objection


class Nowhere:
    """The flavors and images of a cloud that no host could ever take.

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
        self._projects = scope.projects(everywhere.aggregates, pipeline)
        self._others = tuple(
            itertools.product(
                scope.images(everywhere, pipeline), self._projects
            )
        )
        # Whether images fit no flavor, by the traits that they require.
        self._images: dict[frozenset[str], bool] = {}
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

    def of_image(
        self, image: Image, traits: frozenset[str]
    ) -> Iterator[NoHost]:
        """Yield why no host could take any flavor with an image.

        Locks do not count. A flavor that has no host without the image either
        says nothing about the image.

        :param traits: The traits that the image requires.
        """
        if traits not in self._images:
            self._images[traits] = self._fits_no_flavor(image)
        if self._images[traits]:
            keys = (xs.TRAIT_PREFIX + trait for trait in sorted(traits))
            yield NoHost(
                f'requires {named("trait", traits)}, and no host has '
                f'{"them" if len(traits) > 1 else "it"} together with what '
                'any flavor requests',
                tuple(
                    Repair(commands.unset(image, key))
                    for key in keys
                    if key in image.properties
                ),
            )

    def _fits_no_flavor(self, image: Image) -> bool:
        is_known = False
        for flavor in self._causes.snapshot.flavors:
            if self._fits(flavor, image):
                return False
            is_known = is_known or self._fits(flavor, None)
        return is_known

    def _fits(self, flavor: Flavor, image: Image | None) -> bool:
        """Return whether some host has what servers need, locked or not."""
        return bool(self._offers.nodes(self._unlocked(flavor, image)))

    def _has_host(self, flavor: Flavor) -> bool:
        """Return whether some servers of a flavor have a host."""
        accepted = self._accepted(flavor)
        return any(
            self._offers.usable(self._questions.of(flavor, image, project))
            for image, project in (
                itertools.product(accepted, self._projects)
                if accepted
                else self._others
            )
        )

    def _accepted(self, flavor: Flavor) -> list[Image]:
        """Return the images with which nova-api accepts a flavor.

        :returns: One of those with equal properties; empty if it accepts the
            flavor without any, or with none that is known.
        """
        if not any(nova_api.refusals(self._requests.new(flavor))):
            return []
        alike = {
            (tuple(sorted(image.properties.items())), image.owner): image
            for image in reversed(self._causes.snapshot.images)
        }
        return [
            image
            for image in reversed(alike.values())
            if not any(nova_api.refusals(self._requests.new(flavor, image)))
        ]

    def _reasons(self, flavor: Flavor) -> Iterator[NoHost]:
        """Yield why a flavor has no host, the most specific reason first."""
        request = self._requests.new(flavor)
        queries = self._unlocked(flavor, None)
        if not queries:
            # Refused for another reason.
            yield from self._causes.of_metadata(request, flavor)
            return
        fitting = self._hosts(queries)
        if fitting:
            yield from self._causes.of_metadata(request, flavor, fitting)
            yield from self._elsewhere(request, flavor, queries, fitting)
            yield from self._with_images(flavor)
            yield from self._with_images(flavor)
            if self._are_used(fitting):
                yield from self._causes.of_locks(request, flavor, fitting)
            return
        [query, *_] = queries
        yield from self._causes.of(request, query, flavor)
        yield self._causes.together(query)

    def _with_images(self, flavor: Flavor) -> Iterator[NoHost]:
        """Yield that no host takes a flavor with an image that it needs.

        Locks do not count.
        """
        images = self._accepted(flavor)
        dropped: dict[str, None] = {}
        for image in images:
            nodes = self._offers.nodes(self._unlocked(flavor, image))
            for objection in self._of_images(flavor, image):
                reasons = self._offers.dropped(objection, nodes)
                for why, some in reasons.items():
                    nodes &= ~some
                    hosts = listed(self._offers.hosts_of(some))
                    dropped[f'{hosts}: {why}'] = None
            if nodes:
                return
        if images:
            names = named('image', (quoted(image.name) for image in images))
            why = f'; {scope.OF_IMAGES} drops {" and ".join(dropped)}'
            yield NoHost(
                f'is accepted by nova-api only with {names}, and no host '
                f'takes both{why if dropped else ""}'
            )

    def _of_images(self, flavor: Flavor, image: Image) -> list[Objection]:
        """Return what a host filter says of the properties of an image."""
        question = self._questions.regardless(flavor, image)
        return [
            objection
            for name, objection in (
                constraints.objections_by_filter(question.destination)
                if question
                else ()
            )
            if name == scope.OF_IMAGES
        ]

    def _are_used(self, hosts: frozenset[str]) -> bool:
        """Return whether any flavor gets some hosts.

        Locks that nothing opens are reported of their aggregates.
        """
        return any(
            hosts
            & self._offers.hosts(self._questions.of(flavor, image, project))
            for flavor in self._causes.snapshot.flavors
            for image, project in self._others
        )

    def _unlocked(
        self, flavor: Flavor, image: Image | None
    ) -> list[ResourceRequest]:
        """Return the queries of servers for hosts that nothing locks."""
        question = self._questions.regardless(flavor, image)
        return list(map(_unlocked, question.queries if question else ()))

    def _hosts(self, queries: Iterable[ResourceRequest]) -> frozenset[str]:
        return self._offers.hosts_of(self._offers.nodes(queries))

    def _elsewhere(
        self,
        request: Request,
        flavor: Flavor,
        queries: Iterable[ResourceRequest],
        fitting: frozenset[str],
    ) -> Iterator[NoHost]:
        """Yield that no host with the required metadata has the rest."""
        hosts = self._causes.with_metadata(request)
        if not hosts or hosts & fitting:
            return
        lacking = {
            text: None
            for query in queries
            for text, less in _lessened(query)
            if hosts & self._hosts([less])
        }
        which = f'; it {" and ".join(lacking)}' if lacking else ''
        yield NoHost(
            f'requires {self._causes.conditions(request)}, and no host has '
            f'that together with what else it requests{which}',
            tuple(
                Repair(commands.unset(flavor, key))
                for key in sorted(flavor.extra_specs)
                if self._has_host(_without(flavor, key))
            ),
        )


def _without(flavor: Flavor, key: str) -> Flavor:
    extra_specs = {k: v for k, v in flavor.extra_specs.items() if k != key}
    return dataclasses.replace(flavor, extra_specs=extra_specs)


def _lessened(
    query: ResourceRequest,
) -> Iterator[tuple[str, ResourceRequest]]:
    """Yield each single demand of a query, and the query without it."""
    for trait in sorted(query.root_required):
        rest = query.root_required - {trait}
        yield (
            f'requires trait {trait}',
            dataclasses.replace(query, root_required=rest),
        )
    for suffix, group in query.groups.items():

        def less(suffix: str = suffix, **fields: Any) -> ResourceRequest:
            one = dataclasses.replace(query.groups[suffix], **fields)
            return dataclasses.replace(
                query, groups={**query.groups, suffix: one}
            )

        for trait in sorted(group.required_traits):
            rest = group.required_traits - {trait}
            yield f'requires trait {trait}', less(required_traits=rest)
        for trait in sorted(group.forbidden_traits):
            rest = group.forbidden_traits - {trait}
            yield f'forbids trait {trait}', less(forbidden_traits=rest)
        for name in sorted(
            group.resources if len(group.resources) > 1 else ()
        ):
            fewer = {k: v for k, v in group.resources.items() if k != name}
            yield f'requests {name}', less(resources=fewer)


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
