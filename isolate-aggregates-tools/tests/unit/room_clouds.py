# SPDX-License-Identifier: Apache-2.0
"""Small clouds with servers, made up at random, and what could be in them."""

import dataclasses
import itertools

from audit_clouds import LICENSED, LOCK

from isolate_aggregates_tools.compute.servers import (
    ComputeService,
    Server,
    ServerGroup,
    Servers,
)
from isolate_aggregates_tools.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_snapshot,
)

CPUS = 4
IMAGE = make_image('plain')
FLAVORS = {
    name: make_flavor(name, vcpus=cpus, ram=0, disk=0, extra_specs=specs)
    for name, cpus, specs in (
        ('small', 1, {}),
        ('big', 2, {}),
        ('keyed', 1, LOCK),
        ('big-keyed', 3, LOCK),
    )
}


def server(name, host, flavor='small', **more):
    """Return a server without a disk of its own."""
    return Server(
        **{
            'id': f'id-of-{name}',
            'name': name,
            'project_id': 'demo',
            'status': 'ACTIVE',
            'host': host,
            # Nova keeps no id of the flavor of a server.
            'flavor': dataclasses.replace(FLAVORS[flavor], id=''),
            'image_id': IMAGE.id,
            **more,
        }
    )


def group(name, policy, *servers, most=1):
    """Return a server group."""
    return ServerGroup(name, policy, frozenset(s.id for s in servers), most)


def cloud(hosts, servers, locked=(), groups=(), services=(), **more):
    """Return a cloud with hosts of equal size.

    :param hosts: The numbers of CPUs by host.
    :param locked: The hosts in an isolated aggregate.
    :param services: The services that are not just up and enabled.
    :param cells: The cells of hosts, where there is more than one cell.
    """
    cells = more.pop('cells', {})
    by_name = {each.host: each for each in services}
    services = [
        dataclasses.replace(
            by_name.get(host, ComputeService(host)),
            cell=cells.get(host, 'cell1'),
        )
        for host in hosts
    ]
    used = dict.fromkeys(hosts, 0)
    for each in servers:
        if each.host and each.flavor:
            used[each.host] += each.flavor.vcpus
    snapshot = make_snapshot(
        [
            make_aggregate('win', LOCK, hosts=locked),
            *more.pop('aggregates', ()),
        ],
        [
            make_compute_node(
                host,
                inventories={'VCPU': cpus},
                usages={'VCPU': used[host]},
                traits=[LICENSED] if host in locked else [],
            )
            for host, cpus in hosts.items()
        ],
        flavors=list(FLAVORS.values()),
        images=[IMAGE],
        **more,
    )
    return dataclasses.replace(
        snapshot,
        servers=Servers(
            tuple(servers),
            {IMAGE.id: IMAGE},
            True,
            tuple(groups),
        ),
        services=tuple(services),
    )


@dataclasses.dataclass(frozen=True)
class Facts:
    """A random cloud, in the words of the brute force."""

    hosts: dict
    locked: frozenset
    servers: tuple
    groups: tuple
    cells: dict = dataclasses.field(default_factory=dict)

    @property
    def cloud(self):
        """The cloud."""
        return cloud(
            self.hosts,
            self.servers,
            self.locked,
            self.groups,
            cells=self.cells,
        )

    def may_use(self, one, host, home):
        """Return whether a server may be on a host, if there is room.

        :param home: The hosts of all servers by id.
        """
        if (host in self.locked) != bool(one.flavor.extra_specs):
            return False
        # Nova never leaves the cell.
        if self.cells.get(host) != self.cells.get(one.host):
            return False
        for each in self.groups:
            if one.id not in each.members:
                continue
            there = sum(
                home.get(member) == host for member in each.members - {one.id}
            )
            if each.policy == 'anti-affinity' and there >= each.max_per_host:
                return False
            if each.policy == 'affinity' and not there:
                return False
        return True

    def has_room(self, host, home):
        """Return whether the servers on a host fit."""
        return self.hosts[host] >= sum(
            each.flavor.vcpus for each in self.servers if home[each.id] == host
        )


def random_facts(chance, hosts=4, most=8):
    """Return a small cloud that is not overfull."""
    sizes = {
        f'h{n}': chance.choice((2, CPUS, CPUS + 1))
        for n in range(chance.randint(2, hosts))
    }
    locked = frozenset(h for h in sizes if chance.random() < 0.4)
    servers = []
    free = dict(sizes)
    for number in range(chance.randint(1, most)):
        host = chance.choice(sorted(sizes))
        names = [
            name
            for name, flavor in FLAVORS.items()
            if flavor.vcpus <= free[host]
            # Some are out of place.
            and (
                bool(flavor.extra_specs) == (host in locked)
                or chance.random() < 0.2
            )
        ]
        if names:
            one = server(f's{number}', host, chance.choice(names))
            free[host] -= one.flavor.vcpus
            servers.append(one)
    groups = []
    if len(servers) > 2 and chance.random() < 0.5:
        members = chance.sample(servers, 2)
        policy = chance.choice(('affinity', 'anti-affinity', 'soft-affinity'))
        groups.append(group('g', policy, *members))
    cells = (
        {host: chance.choice(('old', 'new')) for host in sizes}
        if chance.random() < 0.3
        else {}
    )
    return Facts(sizes, locked, tuple(servers), tuple(groups), cells)


def least_stranded(facts, failing):
    """Return how few servers of failing hosts can be left without a host."""
    moving = [s for s in facts.servers if s.host in failing]
    others = [h for h in facts.hosts if h not in failing]
    before = {s.id: s.host for s in facts.servers}
    best = len(moving)
    for choice in itertools.product((*others, None), repeat=len(moving)):
        home = {
            **before,
            **{s.id: host for s, host in zip(moving, choice, strict=True)},
        }
        number = choice.count(None)
        if number < best and all(facts.has_room(h, home) for h in others):
            done = dict(before)
            # A server of a group sees those that were placed before it.
            ok = True
            for one, host in zip(moving, choice, strict=True):
                if host is not None:
                    ok = ok and facts.may_use(one, host, done)
                    done[one.id] = host
            if ok:
                best = number
    return best


def fewest_moves(facts, emptied):
    """Return how many servers stay on emptied hosts, and how many move."""
    best = len(facts.servers), 0
    targets = [h for h in facts.hosts if h not in emptied]
    before = {s.id: s.host for s in facts.servers}
    for choice in itertools.product(
        (None, *targets), repeat=len(facts.servers)
    ):
        home = {
            s.id: host or s.host
            for s, host in zip(facts.servers, choice, strict=True)
        }
        moved = [s for s in facts.servers if home[s.id] != s.host]
        result = (
            sum(home[s.id] in emptied for s in facts.servers),
            len(moved),
        )
        if (
            result < best
            and all(facts.may_use(s, home[s.id], home) for s in moved)
            and all(
                facts.has_room(host, home)
                for host in {home[s.id] for s in moved}
            )
        ):
            best = result
    return (
        best
        if best[1]
        else (
            sum(before[s.id] in emptied for s in facts.servers),
            0,
        )
    )


def check_moves(facts, rounds, emptied=()):
    """Check that each move of a plan fits when its turn comes."""
    home = {s.id: [s.host] for s in facts.servers}
    for moves in rounds:
        for move in moves:
            assert home[move.server.id] == [move.source]
            assert move.target not in emptied
            where = {i: hosts[0] for i, hosts in home.items()}
            assert facts.may_use(move.server, move.target, where), move
            home[move.server.id] = [move.source, move.target]
            used = sum(
                s.flavor.vcpus
                for s in facts.servers
                if move.target in home[s.id]
            )
            assert used <= facts.hosts[move.target], move
        for move in moves:
            home[move.server.id] = [move.target]
    return {i: hosts[0] for i, hosts in home.items()}


def without_affinity(facts):
    """Return a cloud without groups whose servers cannot be moved."""
    return dataclasses.replace(
        facts,
        groups=tuple(g for g in facts.groups if g.policy != 'affinity'),
    )
