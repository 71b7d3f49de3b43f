# SPDX-License-Identifier: Apache-2.0
"""Finds flavors whose servers no host could ever take.

The cloud is asked with every host empty, enabled and up. A flavor for which an
image or a project opens a host is not among them, nor is one that only lacks
the keys to the hosts: that may be what the locks are for.
"""

from collections.abc import Iterator
import dataclasses
import itertools

import os_resource_classes as orc
import os_traits

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.request import Flavor, Image
from isolate_aggregates.request import extra_specs as xs
from isolate_aggregates.text import named
from isolate_aggregates.tools.advice import Repair, commands
from isolate_aggregates.tools.advice.spelling import (
    groups_without_resources,
    similar_traits,
)
from isolate_aggregates.tools.answers import scope
from isolate_aggregates.tools.answers.deciding import (
    Question,
    Questions,
    silent,
)
from isolate_aggregates.tools.answers.offers import Offers
from isolate_aggregates.tools.audit import metadata
from isolate_aggregates.tools.audit.cloud import AuditedCloud
from isolate_aggregates.tools.audit.demands import NOWHERE, traits_if_valid
from isolate_aggregates.tools.audit.finding import About, Finding, Severity
from isolate_aggregates.tools.cloud.snapshot import Snapshot
from isolate_aggregates.tools.placement.group import (
    RequestGroup,
    ResourceRequest,
)

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
class _Why:
    """Why no host could take the servers of a flavor.

    :param problem: A predicate, without a full stop.
    """

    problem: str
    repairs: tuple[Repair, ...] = ()


def flavors(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find flavors whose servers no host could ever take."""
    if not cloud.nodes:
        return
    with silent():
        everywhere = _Everywhere(cloud)
        for flavor in cloud.snapshot.flavors:
            if (
                everywhere.has_host(flavor)
                or _has_ended(cloud, flavor)
                # Another check finds these.
                or groups_without_resources(flavor)
            ):
                continue
            why = next(_reasons(cloud, flavor, everywhere), None)
            if why is None:
                continue
            yield Finding(
                'no-host',
                Severity.WARNING,
                f'flavor {flavor.name}',
                why.problem,
                NOWHERE,
                why.repairs,
                about=About.of(flavors=[flavor.name]),
            )


def images(cloud: AuditedCloud) -> Iterator[Finding]:
    """Find images that require a trait which no host has."""
    traits = cloud.snapshot.provider_traits
    for image in cloud.snapshot.images if cloud.nodes else ():
        for trait in sorted(traits_if_valid(cloud, image=image) - traits):
            key = xs.TRAIT_PREFIX + trait
            # The trait may be implied by another property.
            unset = Repair(commands.unset_property(image, key))
            ways = (unset,) if key in image.properties else ()
            why = _without_trait(cloud, trait, ways)
            yield Finding(
                'no-host',
                Severity.WARNING,
                f'image {commands.quoted(image.name)} ({image.id})',
                why.problem,
                NOWHERE,
                why.repairs,
                about=About.of(images=[image.name]),
            )


class _Everywhere:
    """A cloud with every host empty, enabled and up."""

    def __init__(self, cloud: AuditedCloud) -> None:
        snapshot = _enabled(cloud)
        pipeline = Pipeline((*cloud.running, *cloud.mirrors))
        self._questions = Questions(snapshot, pipeline, cloud.requests)
        self._offers = Offers(snapshot)
        images = scope.images(snapshot, pipeline)
        projects = scope.projects(snapshot.aggregates, pipeline)
        self._others = tuple(itertools.product(images, projects))

    def has_host(self, flavor: Flavor) -> bool:
        """Return whether some servers of a flavor have a host."""
        return any(
            self._offers.hosts(self.question(flavor, image, project))
            for image, project in self._others
        )

    def question(
        self,
        flavor: Flavor,
        image: Image | None = None,
        project: str | None = None,
    ) -> Question | None:
        """Return the query of servers; None if they are refused."""
        return self._questions.of(flavor, image, project)

    def is_locked(self, question: Question) -> bool:
        """Return whether only locks keep servers from all hosts."""
        return bool(self._offers.offered(map(_unlocked, question.queries)))


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


def _enabled(cloud: AuditedCloud) -> Snapshot:
    disabled = {os_traits.COMPUTE_STATUS_DISABLED}
    return dataclasses.replace(
        cloud.snapshot,
        services=None,
        traits=cloud.snapshot.traits | (cloud.traits or frozenset()),
        providers=tuple(
            dataclasses.replace(each, traits=each.traits - disabled)
            for each in cloud.snapshot.providers
        ),
    )


def _has_ended(cloud: AuditedCloud, flavor: Flavor) -> bool:
    """Return whether a flavor is that of a reservation that has ended."""
    classes = {rc for p in cloud.snapshot.providers for rc in p.inventories}
    return any(
        spec.kind == 'resources'
        and spec.name.startswith(xs.RESERVATION_CLASS)
        and spec.name not in classes
        for spec in xs.parse(flavor.extra_specs)
    )


def _reasons(
    cloud: AuditedCloud, flavor: Flavor, everywhere: _Everywhere
) -> Iterator[_Why]:
    """Yield why a flavor has no host, the most specific reason first."""
    question = everywhere.question(flavor)
    if question is None or everywhere.is_locked(question):
        # Other checks report what is refused for another reason.
        problem, repairs = metadata.why(cloud, flavor)
        if problem:
            yield _Why(problem, repairs)
        return
    [query, *_] = question.queries
    groups = list(query.groups.values())
    yield from _rejected(cloud, flavor)
    traits = query.root_required.union(*(g.required_traits for g in groups))
    for trait in sorted(traits - cloud.snapshot.provider_traits):
        key = _requiring(trait, flavor)
        ways = tuple(_ways(cloud, flavor, key, trait)) if key else ()
        yield _without_trait(cloud, trait, ways)
    yield from _amounts(cloud, flavor, groups)
    if len(traits) > 1:
        yield _Why(
            f'requires {named("trait", traits)} with what else it requests, '
            'and no host has them together'
        )
    yield _Why('requests what no host has together')


def _rejected(cloud: AuditedCloud, flavor: Flavor) -> Iterator[_Why]:
    """Yield why Placement rejects the query."""
    traits = (
        cloud.snapshot.all_traits if cloud.traits is None else cloud.traits
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
        yield _Why(
            f'forbids trait {spec.name}, which does not exist in Placement, '
            'so that Placement rejects the query',
            (*create, Repair(commands.unset_spec(flavor, key))),
        )


def _without_trait(
    cloud: AuditedCloud, trait: str, ways: tuple[Repair, ...]
) -> _Why:
    problem = f'requires trait {trait}, which no host has'
    if any(trait in (target.traits or ()) for target in cloud.plan.targets):
        return _Why(problem, (Repair(commands.SYNC, safe=True),))
    if not os_traits.is_custom(trait):
        # A lock gives hosts no such trait, and would only close them.
        needed = next(
            (
                f'; it needs {text}'
                for start, text in _CONFIGURED.items()
                if trait.startswith(start)
            ),
            '',
        )
        by_nova = Repair(
            text='nova-compute reports this trait on hosts that support it'
            + needed
        )
        return _Why(problem, (*ways, by_nova))
    command = commands.shown(
        [(commands.PROGRAM, 'lock', 'create', 'AGGREGATE', '--trait', trait)]
    )
    lock = Repair(
        text=f'{command}, for an aggregate of the hosts that have it; this '
        'lets only servers that require the trait use them'
    )
    return _Why(problem, (*ways, lock))


def _ways(
    cloud: AuditedCloud, flavor: Flavor, key: str, trait: str
) -> Iterator[Repair]:
    """Yield how to correct the trait of a flavor, and how to remove it."""
    for right in similar_traits(trait, cloud.required_by):
        put = key.removesuffix(trait) + right
        yield Repair(
            commands.replace_spec(flavor, put, xs.REQUIRED, instead_of=key)
        )
    yield Repair(commands.unset_spec(flavor, key))


def _requiring(trait: str, flavor: Flavor) -> str | None:
    """Return the extra spec that requires a trait."""
    for key, value in flavor.extra_specs.items():
        for spec in xs.parse({key: value}):
            required = ('trait', trait, xs.REQUIRED)
            if (spec.kind, spec.name, spec.value) == required:
                return key
    return None


def _amounts(
    cloud: AuditedCloud, flavor: Flavor, groups: list[RequestGroup]
) -> Iterator[_Why]:
    """Yield the amounts that no provider has."""
    largest: dict[str, int] = {}
    for provider in cloud.snapshot.providers:
        for name, inventory in provider.inventories.items():
            most = min(inventory.capacity, inventory.max_unit)
            largest[name] = max(largest.get(name, 0), most)
    for group in groups:
        for name, amount in sorted(group.resources.items()):
            most = largest.get(name, 0)
            if amount <= most:
                continue
            key = _requesting(name, amount, flavor)
            if not most:
                unset = (Repair(commands.unset_spec(flavor, key)),)
                yield _Why(
                    f'requests {name}, which no host has', unset if key else ()
                )
            elif key:
                lower = commands.set_spec(flavor, key, str(most))
                yield _Why(
                    f'requests {amount} of {name}, and the most that a host '
                    f'has for a server is {most}',
                    (Repair((lower,)),),
                )
            else:
                size = _SIZES.get(name)
                yield _Why(
                    f'requests {amount} of {name}, and the most that a host '
                    f'has for a server is {most}',
                    (
                        Repair(
                            text='Nova cannot change the size of a flavor: '
                            f'create one with {size} of at most {most}, or '
                            'add a larger host'
                        ),
                    )
                    if size
                    else (),
                )


def _requesting(name: str, amount: int, flavor: Flavor) -> str:
    """Return the extra spec that requests an amount; empty if none does."""
    for key, value in flavor.extra_specs.items():
        for spec in xs.parse({key: value}):
            if (spec.kind, spec.name) == ('resources', name) and (
                value.strip() == str(amount)
            ):
                return key
    return ''
