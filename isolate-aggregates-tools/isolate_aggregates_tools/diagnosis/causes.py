# SPDX-License-Identifier: Apache-2.0
"""Why a request has no host even if every host is empty, and the repairs.

``audit`` asks this about every flavor and image, and ``explain`` about the
request that it explains, so both give the same commands.
"""

from collections.abc import Iterable, Iterator, Mapping
import dataclasses

import os_resource_classes as orc
import os_traits

from isolate_aggregates.aggregates import tags as tools_tags
from isolate_aggregates.filters.aggregate_instance_extra_specs import find
from isolate_aggregates.filters.constraints import Conclusion
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.filters.required_metadata import (
    HOST_FILTER,
    RequiredMetadata,
    required_metadata,
)
from isolate_aggregates.lazy import lazy_property
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import named
from isolate_aggregates_tools import errors, shell
from isolate_aggregates_tools.answers.deciding import decided
from isolate_aggregates_tools.cloud.snapshot import Snapshot
from isolate_aggregates_tools.diagnosis.spelling import missing
from isolate_aggregates_tools.diagnosis.spelling.known import KnownNames
from isolate_aggregates_tools.locking_traits import opposite, why_not_put
from isolate_aggregates_tools.placement.group import ResourceRequest
from isolate_aggregates_tools.repairs import commands
from isolate_aggregates_tools.repairs.commands import Commands
from isolate_aggregates_tools.repairs.repair import Repair
from isolate_aggregates_tools.request import Request, constraints

# What nova-compute has to be configured with to report a trait, by how the
# trait begins.
_CONFIGURED = {
    'COMPUTE_SECURITY_TPM': '[libvirt] swtpm_enabled',
    'HW_CPU_X86_AMD_SEV': '[libvirt] num_memory_encrypted_guests and SEV in '
    'the kernel',
    'COMPUTE_ACCELERATORS': 'a driver that supports accelerators of Cyborg',
}
_SIZES = {orc.VCPU: 'vcpus', orc.MEMORY_MB: 'ram', orc.DISK_GB: 'disk'}


@dataclasses.dataclass(frozen=True)
class NoHost:
    """Why no host can take the servers of a request.

    :param problem: A predicate, without a full stop.
    :param repairs: The correction of a misspelling comes first.
    """

    problem: str
    repairs: tuple[Repair, ...] = ()


@dataclasses.dataclass(frozen=True)
class Causes:
    """Finds why requests have no host, whatever is in use.

    :param pipeline: The filters that decide, and those of Nova.
    :param traits: All traits in Placement; None if only the standard traits
        and those that a provider has are known.
    """

    snapshot: Snapshot
    pipeline: Pipeline
    names: KnownNames
    traits: frozenset[str] | None = None

    def of(
        self,
        request: Request,
        query: ResourceRequest,
        flavor: Flavor | None,
    ) -> Iterator[NoHost]:
        """Yield why the hosts do not have what a request needs.

        :param query: Its query to Placement.
        :param flavor: Its flavor; None if that cannot be changed.
        """
        unsuffixed = query.groups.get('')
        if unsuffixed and not unsuffixed.resources:
            yield NoHost(
                'requests all resources in request groups with a suffix, so '
                'that Placement rejects its query as soon as that requires or '
                'forbids an aggregate',
                (
                    Repair(
                        text='request at least one resource without a suffix'
                    ),
                ),
            )
        if flavor:
            yield from self._rejected(flavor)
        for trait in sorted(_traits(query) - self.snapshot.provider_traits):
            yield self.without_trait(trait, flavor, request.image)
        yield from self._amounts(query, flavor)

    def together(self, query: ResourceRequest) -> NoHost:
        """Return that the hosts have all of it, but not together."""
        traits = _traits(query)
        if len(traits) > 1:
            return NoHost(
                f'requires {named("trait", traits)} with what else it '
                'requests, and no host has them together'
            )
        return NoHost('requests what no host has together')

    def _rejected(self, flavor: Flavor) -> Iterator[NoHost]:
        """Yield why Placement rejects the query."""
        traits = (
            self.snapshot.all_traits if self.traits is None else self.traits
        )
        for spec in xs.parse(flavor.extra_specs):
            if (
                spec.kind != 'trait'
                or spec.value != xs.FORBIDDEN
                or spec.name in traits
            ):
                continue
            create = (
                [Repair(commands.create_trait(spec.name))]
                if os_traits.is_custom(spec.name)
                else []
            )
            key = f'{spec.kind}{spec.suffix}:{spec.name}'
            yield NoHost(
                f'forbids trait {spec.name}, which does not exist in '
                'Placement, so that Placement rejects the query',
                (*create, Repair(commands.unset(flavor, key))),
            )

    # Traits.

    def without_trait(
        self, trait: str, flavor: Flavor | None, image: Image | None
    ) -> NoHost:
        """Return that no host has a trait."""
        problem = f'requires trait {trait}, which no host has'
        if self._comes_with_sync(trait):
            return NoHost(problem, (Repair(commands.SYNC, safe=True),))
        return NoHost(
            problem,
            (
                *map(Repair, self._corrected(trait, flavor, image)),
                Repair(text=provided(trait)),
            ),
        )

    def _comes_with_sync(self, trait: str) -> bool:
        """Return whether sync gives hosts a trait."""
        hosts = {
            node.host
            for node in self.snapshot.providers
            if not opposite(trait, node.traits)
        }
        return why_not_put(trait, self.snapshot.all_traits) is None and any(
            hosts & aggregate.hosts
            for aggregate in self.snapshot.required_by.get(trait, ())
        )

    def _corrected(
        self, trait: str, flavor: Flavor | None, image: Image | None
    ) -> Iterator[Commands]:
        """Yield how to correct a trait, and how to remove it."""
        key = _requiring(trait, flavor) if flavor else ''
        if flavor and key:
            yield from missing.required_trait(self.names, flavor, key, trait)
            yield commands.unset(flavor, key)
        key = xs.TRAIT_PREFIX + trait
        # The trait may be implied by another property.
        if image and key in image.properties:
            yield from missing.required_trait(self.names, image, key, trait)
            yield commands.unset(image, key)

    # Amounts.

    @lazy_property
    def _largest(self) -> Mapping[str, int]:
        """The most that any provider has for one server."""
        largest: dict[str, int] = {}
        for provider in self.snapshot.providers:
            for name, inventory in provider.inventories.items():
                most = min(inventory.capacity, inventory.max_unit)
                largest[name] = max(largest.get(name, 0), most)
        return largest

    def _amounts(
        self, query: ResourceRequest, flavor: Flavor | None
    ) -> Iterator[NoHost]:
        """Yield the amounts that no provider has."""
        for group in query.groups.values():
            for name, amount in sorted(group.resources.items()):
                if amount > self._largest.get(name, 0):
                    yield self._too_large(name, amount, flavor)

    def _too_large(
        self, name: str, amount: int, flavor: Flavor | None
    ) -> NoHost:
        most = self._largest.get(name, 0)
        key = requesting(name, amount, flavor) if flavor else ''
        if not most:
            ways = (
                (
                    *missing.resource_class(self.names, flavor, key, name),
                    commands.unset(flavor, key),
                )
                if flavor and key
                else ()
            )
            return NoHost(
                f'requests {name}, which no host has', tuple(map(Repair, ways))
            )
        problem = (
            f'requests {amount} of {name}, and the most that a host has for '
            f'a server is {most}'
        )
        if flavor and key:
            lower = commands.set_value(flavor, key, str(most))
            return NoHost(problem, (Repair((lower,)),))
        if name not in _SIZES:
            return NoHost(problem)
        text = (
            f'Nova cannot change the size of a flavor: create one with '
            f'{_SIZES[name]} of at most {most}, or add a larger host'
        )
        return NoHost(problem, (Repair(text=text),))

    # Metadata.

    def of_metadata(
        self,
        request: Request,
        flavor: Flavor | None,
        fitting: frozenset[str] | None = None,
    ) -> Iterator[NoHost]:
        """Yield why required metadata of aggregates leaves no hosts.

        :param fitting: The hosts that would take it if they were empty and
            nothing was locked, if known.
        """
        hosts = self.with_metadata(request)
        if hosts is None:
            return
        requirements = required_metadata(request.flavor.extra_specs)
        conditions = self.conditions(request)
        if not hosts:
            wrong = [each for each in requirements if not self._holders(each)]
            # Suggest a repair only if it is unambiguous.
            single = wrong[0] if len(wrong) == 1 else None
            conclusion, *_ = self.metadata_conclusions(request)
            yield NoHost(
                f'requires {conditions}, but there are none, so '
                f'{conclusion.filter_name} excludes all hosts',
                tuple(self._without_metadata(flavor, single))
                if single and flavor
                else (),
            )
            return
        yield from self._locked(
            request,
            flavor,
            hosts if fitting is None else hosts & fitting,
            f'requires {conditions}, and all of these are locked',
        )

    def with_metadata(self, request: Request) -> frozenset[str] | None:
        """Return the hosts with the metadata that a request requires.

        :returns: None if it requires none, or if a requirement or what it is
            compared with is not valid: this is reported of the extra spec and
            of the aggregate.
        """
        conclusions = self.metadata_conclusions(request)
        if not conclusions or any(
            one.problem or find(one, self.snapshot.index).invalid
            for one in required_metadata(request.flavor.extra_specs)
        ):
            return None
        return frozenset(
            node.host
            for node in self.snapshot.providers
            if node.host and _may_use(self.snapshot, node.host, conclusions)
        )

    @staticmethod
    def conditions(request: Request) -> str:
        """Return which hosts a request requires by their metadata."""
        requirements = required_metadata(request.flavor.extra_specs)
        return 'hosts in aggregates with ' + ' and '.join(
            map(str, requirements)
        )

    def of_locks(
        self, request: Request, flavor: Flavor, fitting: frozenset[str]
    ) -> Iterator[NoHost]:
        """Yield which keys are missing besides those that a flavor has.

        A flavor without any key may be meant to have no host.
        """
        keys = request.required_traits & self.snapshot.required_by.keys()
        if keys:
            yield from self._locked(
                request,
                flavor,
                fitting,
                f'requires {named("trait", keys)}, and all hosts that have '
                'what it requests are locked',
            )

    def _locked(
        self,
        request: Request,
        flavor: Flavor | None,
        hosts: frozenset[str],
        problem: str,
    ) -> Iterator[NoHost]:
        """Yield the fewest keys that are missing, if all hosts need some."""
        own = request.required_traits
        missing = [_locking(self.snapshot, host) - own for host in hosts]
        if flavor and missing and all(missing):
            fewest = min(map(sorted, missing), key=lambda s: (len(s), s))
            yield NoHost(
                f'{problem}; it lacks {" and ".join(fewest)}',
                (Repair(commands.grant(flavor, fewest)),),
            )

    def _holders(self, requirement: RequiredMetadata) -> bool:
        """Return whether hosts with compute nodes have some metadata."""
        hosts = {node.host for node in self.snapshot.providers}
        return any(
            hosts & aggregate.hosts
            for aggregate in find(requirement, self.snapshot.index).aggregates
        )

    def _without_metadata(
        self, flavor: Flavor, requirement: RequiredMetadata
    ) -> Iterator[Repair]:
        """Yield how to correct or do without metadata, or to give it."""
        for way in missing.metadata(self.names, flavor, requirement):
            yield Repair(way)
        yield Repair(commands.unset(flavor, requirement.extra_spec))
        # Nova splits what an aggregate has at commas, so it cannot have one.
        if requirement.is_plain and ',' not in requirement.value:
            line = shell.command(
                shell.Kind.AGGREGATE_SET,
                *shell.option(
                    '--property', f'{requirement.key}={requirement.value}'
                ),
                names=['AGGREGATE'],
            )
            yield Repair(
                text=f'{line}, for an aggregate of the hosts that have it; '
                f'this lets flavor {flavor.name} use them'
            )

    def metadata_conclusions(self, request: Request) -> list[Conclusion]:
        """Return the conclusions from the metadata that a flavor requires."""
        if not required_metadata(request.flavor.extra_specs):
            return []
        try:
            destination = decided(
                request, self.snapshot.index, self.pipeline
            ).destination
        except errors.InvalidRequest:
            # Another check reports it.
            return []
        return [
            conclusion
            for conclusion in destination.conclusions
            if HOST_FILTER in (conclusion.host_filter, conclusion.filter_name)
        ]


def provided(trait: str) -> str:
    """Return how hosts get a trait."""
    if os_traits.is_custom(trait):
        command = commands.shown(commands.lock('AGGREGATE', trait))
        return (
            f'{command}, for an aggregate of the hosts that have it; this '
            'lets only servers that require the trait use them'
        )
    # A lock gives hosts no such trait, and would only close them.
    needed = next(
        (
            f'; it needs {text}'
            for start, text in _CONFIGURED.items()
            if trait.startswith(start)
        ),
        '',
    )
    return 'nova-compute reports this trait on hosts that support it' + needed


def requesting(name: str, amount: int, flavor: Flavor) -> str:
    """Return the extra spec that requests an amount; empty if none does."""
    for key, value in flavor.extra_specs.items():
        for spec in xs.parse({key: value}):
            if (spec.name, spec.amount) == (name, amount):
                return key
    return ''


def _traits(query: ResourceRequest) -> frozenset[str]:
    return frozenset(query.root_required).union(
        *(group.required_traits for group in query.groups.values())
    )


def _requiring(trait: str, flavor: Flavor) -> str:
    """Return the extra spec that requires a trait; empty if none does."""
    for key, value in flavor.extra_specs.items():
        for spec in xs.parse({key: value}):
            required = ('trait', trait, xs.REQUIRED)
            if (spec.kind, spec.name, spec.value) == required:
                return key
    return ''


def _locking(snapshot: Snapshot, host: str) -> frozenset[str]:
    """Return the traits that a server must require to use a host."""
    return frozenset().union(
        *map(tools_tags.required_traits, snapshot.index.by_host.get(host, ()))
    )


def _may_use(
    snapshot: Snapshot, host: str, conclusions: Iterable[Conclusion]
) -> bool:
    aggregates = snapshot.index.aggregates_of.get(host, frozenset())
    return not any(
        alone.refusals
        or constraints.dropped(alone, host)
        or any(
            choice.isdisjoint(aggregates)
            for choice in alone.required_aggregates
        )
        for alone in (one.alone for one in conclusions)
    )
