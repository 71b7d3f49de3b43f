# SPDX-License-Identifier: Apache-2.0
"""Proposes changes after which a request might get a host.

They are taken from the state of the cloud. None of them has been tried.
"""

from collections.abc import Iterable, Iterator
import dataclasses

from isolate_aggregates.aggregates import Aggregate, domains
from isolate_aggregates.aggregates import tags as tools_tags
from isolate_aggregates.filters.aggregate_instance_extra_specs import find
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.required_metadata import (
    required_metadata,
    values_of,
)
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates_tools import errors, filter_keys
from isolate_aggregates_tools.answers import scope
from isolate_aggregates_tools.answers.deciding import question
from isolate_aggregates_tools.answers.offers import Offers
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.diagnosis.causes import Causes
from isolate_aggregates_tools.diagnosis.renamed_hosts import renamed
from isolate_aggregates_tools.diagnosis.spelling import (
    aggregates,
    flavors,
    images,
    missing,
)
from isolate_aggregates_tools.diagnosis.spelling.known import KnownNames
from isolate_aggregates_tools.diagnosis.spelling.misspelling import Misspelling
from isolate_aggregates_tools.mirrored.nova_image import KNOWN
from isolate_aggregates_tools.placement import group
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.commands import SYNC, Commands
from isolate_aggregates_tools.repairs.repair import Repair
from isolate_aggregates_tools.request import Request, resources

# The most ways of one kind that are proposed.
_OF_A_KIND = 3
_NONE: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Ways:
    """The changes that might give a request a host.

    :param filters: All configured filters.
    """

    snapshot: Snapshot
    request: Request
    pipeline: Pipeline
    filters: Pipeline

    def hosts(self, snapshot: Snapshot, request: Request) -> frozenset[str]:
        """Return the hosts that a request gets in a changed cloud."""
        offers = (
            self._offers
            if snapshot.providers is self.snapshot.providers
            and snapshot.traits is self.snapshot.traits
            else Offers(snapshot, in_use=True)
        )
        return offers.hosts(question(request, snapshot.index, self.pipeline))

    @lazy_property
    def _offers(self) -> Offers:
        return Offers(self.snapshot, in_use=True)

    @lazy_property
    def flavor(self) -> Flavor | None:
        """The flavor in the cloud; None if there is none any more.

        A server has a copy, which does not change with the flavor. The flavor
        of a reservation is left as the reservation made it.
        """
        mine = self.request.flavor
        for flavor in self.snapshot.flavors:
            if flavor.name == mine.name and mine.id in ('', flavor.id):
                slots = xs.reservation_classes(flavor.extra_specs)
                classes = (p.inventories for p in self.snapshot.providers)
                return None if slots & set().union(*classes) else flavor
        return None

    @lazy_property
    def query(self) -> ResourceRequest | None:
        """The query to Placement without locks; None if it is refused."""
        try:
            return resources.resource_request(self.request)
        except errors.InvalidRequest:
            return None

    @lazy_property
    def _names(self) -> KnownNames:
        project = self.request.project_id
        return KnownNames(
            self.snapshot,
            self.pipeline,
            self.filters,
            frozenset({project} if project else ()),
        )

    @lazy_property
    def _causes(self) -> tuple[Repair, ...]:
        """The repairs of what no host has, even if it is empty."""
        causes = Causes(self.snapshot, self.pipeline, self._names)
        found = [
            *causes.of_metadata(self.request, self.flavor),
            *(
                causes.of(self.request, self.query, self.flavor)
                if self.query
                else ()
            ),
        ]
        return tuple(repair for cause in found for repair in cause.repairs)

    @property
    def texts(self) -> Iterator[Repair]:
        """What to do where no command helps."""
        return (
            dataclasses.replace(each, is_tried=False)
            for each in self._causes
            if not each.commands
        )

    def additions(self) -> Iterator[Commands]:
        """Yield how to meet the request: corrections first, then keys."""
        yield from self._corrections()
        if self.flavor:
            yield from self._keys(self.flavor)
        yield from self._projects()
        yield SYNC
        yield from self._services()
        yield from (each.commands for each in renamed(self.snapshot))
        yield from self._metadata()
        yield from self._values()
        if self.flavor:
            yield from self._lowered(self.flavor)

    def removals(self) -> Iterator[Commands]:
        """Yield how to do without a demand, and without a lock at last."""
        for key in sorted(self.flavor.extra_specs if self.flavor else ()):
            if self.flavor and not self._can_be_lowered(key):
                yield commands.unset(self.flavor, key)
        if self.request.image:
            yield from self._properties(self.request.image)
        yield from self._members()
        yield from self._locks()

    def _corrections(self) -> Iterator[Commands]:
        """Yield how to correct what is misspelled."""
        image = self.request.image
        things: tuple[Iterable[Misspelling], ...] = (
            flavors.misspelled(self._names, self.flavor)
            if self.flavor
            else (),
            images.misspelled(image) if image else (),
            *(
                aggregates.misspelled(self._names, each)
                for each in self.snapshot.aggregates
            ),
        )
        for misspellings in things:
            for each in misspellings:
                # The other repairs remove it.
                for repair in each.repairs[:1]:
                    yield repair.commands
        for repair in self._causes:
            if repair.commands and not _removes(repair.commands):
                yield repair.commands
        for key in sorted(self.flavor.extra_specs if self.flavor else ()):
            if self.flavor and not self.snapshot.index.with_key(key):
                yield from missing.reservation(self._names, self.flavor, key)
        for key in sorted(image.properties if image else ()):
            if image and not self.snapshot.index.with_key(key):
                yield from missing.reservation(self._names, image, key)

    def _keys(self, flavor: Flavor) -> Iterator[Commands]:
        """Yield how to give a flavor keys."""
        if len(self._suffixes) > 1 and group.GROUP_POLICY not in (
            flavor.extra_specs
        ):
            for policy in group.GROUP_POLICIES:
                yield commands.replace_spec(
                    flavor, group.GROUP_POLICY, policy, group.GROUP_POLICY
                )
        by_host = self.snapshot.index.by_host
        # Hosts that would do but for the locks. If there are none, any host
        # may do once something else is repaired too.
        hosts = self.hosts(self._unlocked, self.request) or by_host.keys()
        missing_traits = {
            frozenset().union(*map(tools_tags.required_traits, by_host[host]))
            - self._required
            for host in hosts & by_host.keys()
        }
        fewest = sorted(
            filter(None, missing_traits),
            key=lambda some: (len(some), *sorted(some)),
        )
        for traits in fewest[:_OF_A_KIND]:
            yield commands.grant(flavor, sorted(traits))

    @property
    def _unlocked(self) -> Snapshot:
        """The cloud without locks."""
        return dataclasses.replace(
            self.snapshot,
            aggregates=tuple(
                dataclasses.replace(
                    aggregate,
                    metadata={
                        key: value
                        for key, value in aggregate.metadata.items()
                        if not tools_tags.is_lock(key, value)
                    },
                )
                for aggregate in self.snapshot.aggregates
            ),
        )

    @lazy_property
    def _suffixes(self) -> set[str]:
        """The suffixes of the request groups with resources."""
        specs = xs.parse(self.request.flavor.extra_specs)
        suffixes = {spec.suffix for spec in specs if spec.amount}
        return suffixes - {''}

    @lazy_property
    def _required(self) -> frozenset[str]:
        try:
            return self.request.required_traits
        except errors.InvalidRequest:
            return frozenset()

    def _projects(self) -> Iterator[Commands]:
        """Yield how to add the project to those of an aggregate."""
        project = self.request.project_id
        prefixes = scope.project_prefixes(self.pipeline)
        if not project or not prefixes:
            return
        for aggregate in self.snapshot.aggregates:
            keys = [k for k in aggregate.metadata if k.startswith(prefixes)]
            project_ids = {
                p for k in keys for p in aggregate.metadata[k].split(',')
            }
            if keys and project not in project_ids:
                # Tags of domains have one value each, which sync restores.
                by_hand = [k for k in keys if not domains.is_of_domain(k)]
                key = (by_hand or [domains.TENANTS])[0]
                value = ','.join(
                    filter(None, [aggregate.metadata.get(key), project])
                )
                yield (commands.set_value(aggregate, key, value),)
                # Nova's own filter takes the whole value for one project, and
                # no value may have more than 255 characters.
                yield (self._another_project(aggregate, project),)
        for aggregate in self.snapshot.aggregates:
            if aggregate.hosts and not any(
                key.startswith(prefixes) for key in aggregate.metadata
            ):
                yield (self._another_project(aggregate, project),)

    @staticmethod
    def _another_project(
        aggregate: Aggregate, project: str
    ) -> commands.Command:
        """Return how to name a project with a key of its own."""
        number, key = 1, domains.TENANTS
        while key in aggregate.metadata:
            number += 1
            key = f'{domains.TENANTS}{number}'
        return commands.set_value(aggregate, key, project)

    def _services(self) -> Iterator[Commands]:
        """Yield how to enable disabled hosts, those that would do first.

        Spares are for the servers of hosts that fail.
        """
        snapshot = self.snapshot
        disabled = sorted(snapshot.disabled_hosts - snapshot.spare_hosts)
        enabled = changes.enabled_services(disabled)(self.snapshot)
        hosts = self.hosts(enabled, self.request) if disabled else _NONE
        suitable = [host for host in disabled if host in hosts]
        # None of them is enough alone; in a pair, any may be.
        for host in (suitable or disabled)[:_OF_A_KIND]:
            yield commands.enable_service(host)

    def _metadata(self) -> Iterator[Commands]:
        """Yield how to correct metadata that a flavor requires."""
        for requirement in required_metadata(self.request.flavor.extra_specs):
            if requirement.problem:
                continue
            for aggregate, _ in find(requirement, self.snapshot.index).invalid:
                yield commands.unset(aggregate, requirement.key)

    def _values(self) -> Iterator[Commands]:
        """Yield how to let aggregates take the image and the flavor.

        Nova's host filters compare these values.
        """
        names = {entry.name for entry in self.pipeline.filters}
        wanted = {}
        if 'AggregateImagePropertiesIsolation' in names:
            properties = self.request.image_properties
            wanted.update(
                {k: properties[k] for k in properties.keys() & KNOWN}
            )
        if 'AggregateTypeAffinityFilter' in names:
            wanted['instance_type'] = self.request.flavor.name
        for aggregate in self.snapshot.aggregates:
            for key in sorted(aggregate.metadata.keys() & wanted.keys()):
                values = values_of(aggregate.metadata[key])
                if wanted[key] not in values:
                    joined = ','.join([*sorted(values), wanted[key]])
                    yield (commands.set_value(aggregate, key, joined),)

    def _lowered(self, flavor: Flavor) -> Iterator[Commands]:
        """Yield how to request less of a resource class."""
        for spec in xs.parse(flavor.extra_specs):
            if not spec.amount:
                continue
            smaller = {
                most
                for provider in self.snapshot.providers
                for inventory in (provider.inventories.get(spec.name),)
                if inventory
                for most in (min(inventory.capacity, inventory.max_unit),)
                if 0 < most < spec.amount
            }
            key = f'{spec.kind}{spec.suffix}:{spec.name}'
            for most in sorted(smaller, reverse=True)[:_OF_A_KIND]:
                yield (commands.set_value(flavor, key, str(most)),)

    def _can_be_lowered(self, key: str) -> bool:
        """Return whether hosts have some of what an extra spec requests."""
        return any(
            spec.kind == 'resources'
            and any(
                spec.name in p.inventories for p in self.snapshot.providers
            )
            for spec in xs.parse({key: ''})
        )

    def _members(self) -> Iterator[Commands]:
        """Yield how to remove memberships that Nova does not know."""
        aggregates = {a.uuid: a for a in self.snapshot.aggregates}
        for node in self.snapshot.providers:
            for uuid in sorted(node.aggregates & aggregates.keys()):
                if node.host and node.host not in aggregates[uuid].hosts:
                    yield commands.leave_aggregate(node, uuid)

    def _properties(self, image: Image) -> Iterator[Commands]:
        declaration = self.pipeline.image_properties
        for key in sorted(image.properties):
            if key.startswith(xs.TRAIT_PREFIX) or declaration.has(key):
                yield commands.unset(image, key)

    def _locks(self) -> Iterator[Commands]:
        """Yield how to take away locks, of whole aggregates."""
        for aggregate in self.snapshot.aggregates:
            if xs.RESERVATION_TRAIT in tools_tags.required_traits(aggregate):
                # Without its lock, no reservation is safe.
                for host in sorted(aggregate.hosts)[:_OF_A_KIND]:
                    yield commands.disable_reservations([host])
                continue
            if not aggregate.hosts:
                continue
            keys = [
                key
                for key, value in sorted(aggregate.metadata.items())
                if tools_tags.is_lock(key, value)
                or key.startswith(self._prefixes)
            ]
            if keys:
                yield commands.unset(aggregate, *keys)

    @lazy_property
    def _prefixes(self) -> tuple[str, ...]:
        """The prefixes of keys that lock for other filters."""
        return tuple(
            prefix
            for entry in self.pipeline.filters
            for prefix in (
                *filter_keys.of_reservations(entry.request_filter).forbidden,
                *filter_keys.of_projects(entry.request_filter),
            )
        )


def _removes(todo: Commands) -> bool:
    """Return whether commands only remove something."""
    return all(command[2:3] == ('unset',) for command in todo)
