# SPDX-License-Identifier: Apache-2.0
"""Shows an effect: as rows, the worst first, and as a document."""

from collections.abc import Iterator
import dataclasses

from isolate_aggregates.text import counted, listed, quoted
from isolate_aggregates_tools import ranges
from isolate_aggregates_tools.audit import Finding
from isolate_aggregates_tools.audit.servers import OutOfPlace
from isolate_aggregates_tools.documents import Names
from isolate_aggregates_tools.effect import documents
from isolate_aggregates_tools.effect.effect import (
    AccessChange,
    Effect,
    LockChange,
    ProjectChange,
    UserChange,
)

# The most rows that are shown at once.
MOST = 20

_ANY_FLAVOR = 'any flavor without extra specs'
_NO_FINDING = 'no finding'


@dataclasses.dataclass(frozen=True)
class Row:
    """One part of an effect.

    :param what: What changes, such as ``flavor m1.small``.
    :param before: Its state before the change; empty if ``why`` says all.
    :param after: Its state after the change.
    :param why: More about it; may be empty.
    """

    what: str
    before: str = ''
    after: str = ''
    why: str = ''

    def __str__(self) -> str:
        states = f'{self.before} -> {self.after}' if self.before else ''
        return f'{self.what}: {", ".join(filter(None, [states, self.why]))}'


def rows(effect: Effect) -> list[Row]:
    """Return the parts of an effect, the worst first.

    Servers that would be out of place, then whom the change lets in, then who
    has no host left or fewer hosts, then the rest.
    """
    order = sorted(effect.flavors, key=_badness)
    return [
        *(
            Row(_server(each), 'in place', 'out of place', _why(each))
            for each in _sorted(effect.displaced)
        ),
        *map(_users, effect.users),
        *map(_flavor, order),
        *(Row(f'project {p.project}', why=_moves(p)) for p in effect.projects),
        *(
            Row(f'reservation {each.lock}', why=_moves(each))
            for each in effect.reservations
        ),
        *(Row(f'lock {each.lock}', why=_moves(each)) for each in effect.locks),
        *(
            Row(f'availability zone {each.lock}', why=_moves(each))
            for each in effect.zones
        ),
        *(
            Row(_finding(f), _NO_FINDING, f.severity.label, f.problem)
            for f in effect.new_findings
        ),
        *(
            Row(_server(each), 'out of place', 'in place')
            for each in _sorted(effect.placed)
        ),
        *(
            Row(_finding(f), f.severity.label, _NO_FINDING)
            for f in effect.old_findings
        ),
        *_query(effect),
    ]


def summary(effect: Effect) -> str:
    """Return an effect as one sentence."""
    if not effect:
        return 'Nothing changes for servers, flavors, projects and findings.'
    gaining = {each.flavor for each in effect.flavors if each.gained}
    losing = {each.flavor for each in effect.flavors if each.lost}
    parts = [
        f'{counted(number, noun)}{more}'
        for number, noun, more in (
            (len(effect.displaced), 'server', ' out of place'),
            (len(effect.placed), 'server', ' back in place'),
            (len(effect.stranded_flavors), 'flavor', ' without any host'),
            (len(gaining), 'flavor', ' with more hosts'),
            (len(losing), 'flavor', ' with fewer hosts'),
            (len(effect.new_findings), 'new finding', ''),
            (len(effect.old_findings), 'finding', ' resolved'),
        )
        if number
    ]
    text = ', '.join(parts) or 'small changes'
    unknown = '' if effect.servers_known else ' The servers are not known.'
    return f'Effect: {text}.{unknown}'


def lines(effect: Effect, most: int | None = MOST) -> Iterator[str]:
    """Yield an effect as lines, the worst first.

    :param most: The most lines, without the summary; None for all.
    """
    yield summary(effect)
    some = rows(effect)
    for row in some[:most]:
        yield f'  {row}'
    if most is not None and len(some) > most:
        yield f'  and {len(some) - most} more, which -f json shows'


def document(effect: Effect) -> documents.Effect:
    """Return an effect as a JSON document."""
    return documents.Effect(
        servers=documents.Servers(
            out_of_place=_servers(effect.displaced),
            in_place=_servers(effect.placed),
        )
        if effect.servers_known
        else None,
        flavors=tuple(
            documents.Flavor(
                flavor=each.flavor or None,
                image=each.image,
                hosts=_pair(each.hosts),
                slots=_pair(each.slots),
                **_hosts(each),
            )
            for each in sorted(effect.flavors, key=_badness)
        ),
        nowhere=documents.Nowhere(
            flavors=tuple(name or None for name in effect.stranded_flavors),
            images=tuple(effect.stranded_images),
        ),
        users=effect.users,
        projects=effect.projects,
        locks=tuple(
            documents.LockChange(lock=each.lock, **_hosts(each))
            for each in effect.locks
        ),
        reservations=tuple(
            documents.Reservation(key=each.lock, **_hosts(each))
            for each in effect.reservations
        ),
        zones=tuple(
            documents.Zone(zone=each.lock, **_hosts(each))
            for each in effect.zones
        ),
        findings=documents.Findings(
            new=_findings(effect.new_findings),
            resolved=_findings(effect.old_findings),
        ),
        longest_query=documents.LongestQuery(
            before=effect.longest_query[0],
            after=effect.longest_query[1],
            limit=effect.max_query_length or None,
        ),
    )


def _badness(change: AccessChange) -> tuple[object, ...]:
    return (
        not change.gained,
        not change.is_stranded,
        not change.lost,
        -len(change.gained) - len(change.lost),
        change.flavor,
        change.image or '',
    )


def _server(each: OutOfPlace) -> str:
    server = each.server
    return (
        f'server {quoted(server.name)} ({server.id}) of project '
        f'{server.project_id} on {server.host}'
    )


def _why(each: OutOfPlace) -> str:
    """Return why a server is out of place."""
    reasons = '; '.join(each.reasons)
    if each.kind == 'server-changed':
        return f'a new server like it: {reasons}'
    return reasons


def _flavor(change: AccessChange) -> Row:
    image = f' with image {quoted(change.image)}' if change.image else ''
    name = f'flavor {change.flavor}' if change.flavor else _ANY_FLAVOR
    before, after = (
        f'{counted(hosts, "host")}, room for {slots}'
        for hosts, slots in zip(change.hosts, change.slots, strict=True)
    )
    return Row(f'{name}{image}', before, after, _moves(change))


def _users(change: UserChange) -> Row:
    before, after = (
        'all projects'
        if projects is None
        else listed(projects, None) or 'no project'
        for projects in (change.before, change.after)
    )
    return Row(f'who may use flavor {change.flavor}', before, after)


def _finding(finding: Finding) -> str:
    return f'finding {finding.kind} on {finding.subject}'


def _moves(change: AccessChange | ProjectChange | LockChange) -> str:
    """Return which hosts are gained and lost."""
    parts = [
        f'{verb} {ranges.folded(hosts)}'
        for verb, hosts in (('gains', change.gained), ('loses', change.lost))
        if hosts
    ]
    return listed(parts, None)


def _query(effect: Effect) -> Iterator[Row]:
    before, after = effect.longest_query
    if before != after:
        limit = effect.max_query_length
        yield Row(
            'longest query to Placement',
            f'{before} bytes',
            f'{after} bytes',
            f'max_query_length is {limit}; longer ones are shortened'
            if limit and after > limit
            else '',
        )


def _sorted(some: tuple[OutOfPlace, ...]) -> list[OutOfPlace]:
    return sorted(
        some,
        key=lambda each: (
            each.kind,
            each.server.project_id,
            each.server.host or '',
            each.server.id,
        ),
    )


def _servers(some: tuple[OutOfPlace, ...]) -> tuple[documents.Server, ...]:
    return tuple(
        documents.Server(
            id=each.server.id,
            name=each.server.name,
            project=each.server.project_id,
            host=each.server.host,
            flavor=each.server.flavor.name if each.server.flavor else None,
            kind=each.kind,
            reasons=tuple(each.reasons),
        )
        for each in _sorted(some)
    )


def _findings(some: tuple[Finding, ...]) -> tuple[documents.Finding, ...]:
    return tuple(
        documents.Finding(
            kind=finding.kind,
            severity=finding.severity.label,
            subject=finding.subject,
            problem=finding.problem,
            **vars(finding.about),
        )
        for finding in some
    )


def _hosts(change: AccessChange | LockChange) -> dict[str, Names]:
    return {
        'gained': tuple(sorted(change.gained)),
        'lost': tuple(sorted(change.lost)),
    }


def _pair(values: tuple[int, int]) -> documents.Pair:
    return documents.Pair(before=values[0], after=values[1])
