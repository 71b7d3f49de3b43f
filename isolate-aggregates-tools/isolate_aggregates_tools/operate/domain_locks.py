# SPDX-License-Identifier: Apache-2.0
"""Reserves aggregates for the projects of Keystone domains.

The tags are those of :mod:`isolate_aggregates.aggregates.domains`. Nova writes
all tags of one call in one transaction, but removes them one by one. So a
domain is added with one call, and removed with its own tag last: until then
the aggregate stays closed to all but the remaining projects, and ``sync`` can
tell what the tags of its projects belong to.
"""

from collections.abc import Iterator, Sequence
import functools

from isolate_aggregates import text
from isolate_aggregates.aggregates import Aggregate, domains
from isolate_aggregates_tools import domains as tools_domains
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cloud import changes
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.identity import Domain
from isolate_aggregates_tools.operate import names
from isolate_aggregates_tools.operate.plan import Plan, Step

_OLD_SERVERS = (
    'existing servers stay on the hosts; audit --servers lists those that may '
    'not run there'
)


def lock(cloud: LiveCloud, name: str, domain_names: Sequence[str]) -> Plan:
    """Return the plan to reserve an aggregate for domains only.

    :raises InvalidRequest: if it is reserved for others, as the domains would
        be let in beside them.
    """
    aggregate = names.aggregate(cloud.aggregates(), name, 'Nova')
    owners = [cloud.domain(each) for each in dict.fromkeys(domain_names)]
    present = domains.of(aggregate)
    if _is_reserved(aggregate) and any(d.id not in present for d in owners):
        raise errors.InvalidRequest(
            f'Aggregate {aggregate.name} is already reserved for projects; '
            'to let in a domain beside them, run key add --domain.'
        )
    steps = tuple(_add(cloud, aggregate, owners))
    notes = (*_notes(owners), *((_OLD_SERVERS,) if steps else ()))
    return Plan(steps, notes=notes, aggregate=aggregate)


def grant(cloud: LiveCloud, name: str, domain_name: str) -> Plan:
    """Return the plan to let a domain in beside others.

    :raises InvalidRequest: if the aggregate is open to all projects, as they
        would be kept out.
    """
    aggregate = names.aggregate(cloud.aggregates(), name, 'Nova')
    domain = cloud.domain(domain_name)
    if not _is_reserved(aggregate):
        raise errors.InvalidRequest(
            f'Aggregate {aggregate.name} is not reserved for any project; to '
            'reserve it for a domain, run lock create --domain.'
        )
    steps = tuple(_add(cloud, aggregate, [domain]))
    return Plan(steps, notes=tuple(_notes([domain])))


def unlock(cloud: LiveCloud, name: str, domain_names: Sequence[str]) -> Plan:
    """Return the plan to open an aggregate that domains are reserved for.

    :raises InvalidRequest: if it stays reserved for others.
    """
    aggregate = names.aggregate(cloud.aggregates(), name, 'Nova')
    ids = [_tagged(cloud, aggregate, each) for each in domain_names]
    others = set(domains.of(aggregate)) - set(ids)
    if others or domains.by_hand(aggregate):
        raise errors.InvalidRequest(
            f'Aggregate {aggregate.name} is also reserved for others; to keep '
            'out a domain, run key remove --domain.'
        )
    return Plan(
        tuple(
            step
            for domain_id in dict.fromkeys(ids)
            for step in _remove(cloud, aggregate, domain_id)
        )
    )


def revoke(cloud: LiveCloud, name: str, domain_name: str) -> Plan:
    """Return the plan to keep out a domain, but not others.

    :raises InvalidRequest: if there are no others, as the aggregate would be
        open to all projects.
    """
    aggregate = names.aggregate(cloud.aggregates(), name, 'Nova')
    domain_id = _tagged(cloud, aggregate, domain_name)
    _check_others(aggregate, domain_id)
    steps = _remove(cloud, aggregate, domain_id, last=False)
    return Plan(tuple(steps), notes=(_OLD_SERVERS,))


def _is_reserved(aggregate: Aggregate) -> bool:
    return any(key.startswith(domains.TENANTS) for key in aggregate.metadata)


def _tagged(cloud: LiveCloud, aggregate: Aggregate, name: str) -> str:
    """Return the id of a domain of an aggregate; it may be deleted."""
    present = domains.of(aggregate)
    if name in present:
        return name
    domain_id = cloud.domain(name).id
    if domain_id not in present:
        raise errors.InvalidRequest(
            f'Aggregate {aggregate.name} is not reserved for domain {name}.'
        )
    return domain_id


def _check_others(aggregate: Aggregate, domain_id: str) -> None:
    """Check that the tags of projects of others keep an aggregate closed.

    A domain without projects does not count: another command may be about to
    remove it.
    """
    if domains.by_hand(aggregate) or any(
        tools_domains.projects(aggregate, each)
        for each in domains.of(aggregate)
        if each != domain_id
    ):
        return
    raise errors.InvalidRequest(
        f'Without domain {domain_id}, aggregate {aggregate.name} would be '
        'open to all projects; if it should be, run lock delete --domain.'
    )


def _add(
    cloud: LiveCloud, aggregate: Aggregate, owners: Sequence[Domain]
) -> Iterator[Step]:
    wanting = []
    metadata: dict[str, str] = {}
    for domain in owners:
        right = domains.tag(domain.id) | tools_domains.tags(
            domain.id, domain.projects
        )
        if right.items() - aggregate.metadata.items():
            wanting.append(_label(domain))
            metadata |= right
    if metadata:
        yield Step(
            f'reserve aggregate {aggregate.name} for '
            f'{text.named("domain", wanting)}',
            functools.partial(cloud.nova.set_metadata, aggregate, metadata),
            changes.values(aggregate, metadata),
        )


def _remove(
    cloud: LiveCloud, aggregate: Aggregate, domain_id: str, last: bool = True
) -> Iterator[Step]:
    keys = tools_domains.projects(aggregate, domain_id)
    if keys:
        yield Step(
            f'keep the projects of domain {domain_id} out of aggregate '
            f'{aggregate.name}',
            functools.partial(
                cloud.nova.set_metadata, aggregate, dict.fromkeys(keys)
            ),
            changes.values(aggregate, dict.fromkeys(keys)),
        )

    def untag() -> None:
        current = names.aggregate(cloud.aggregates(), aggregate.uuid, 'Nova')
        if not last:
            # Another command may have removed the others meanwhile.
            _check_others(current, domain_id)
        # A sync may have added projects meanwhile.
        more = tools_domains.projects(current, domain_id)
        own = domains.tag(domain_id)
        cloud.nova.set_metadata(aggregate, dict.fromkeys([*more, *own]))

    yield Step(
        f'untag aggregate {aggregate.name} domain {domain_id}',
        untag,
        changes.values(aggregate, dict.fromkeys(domains.tag(domain_id))),
    )


def _label(domain: Domain) -> str:
    return domain.id if domain.id == domain.name else f'{domain.name!r}'


def _notes(owners: Sequence[Domain]) -> Iterator[str]:
    for domain in owners:
        if not domain.projects:
            yield (
                f'domain {_label(domain)} has no projects yet, so it opens '
                'nothing'
            )
    yield (
        'projects that are created or deleted later are followed by sync; '
        'run it regularly, for example with --watch'
    )
