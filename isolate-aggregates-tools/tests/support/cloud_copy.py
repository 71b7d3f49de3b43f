# SPDX-License-Identifier: Apache-2.0
"""A copy of a cloud, on which printed commands are carried out."""

from collections.abc import Mapping
import dataclasses

from bash import read_by_bash

from isolate_aggregates import exception
from isolate_aggregates.decision import decide
from isolate_aggregates.filters import loading
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cloud.file.saved_cloud import SnapshotCloud
from isolate_aggregates_tools.commands import clouds
from isolate_aggregates_tools.explain import explain
from isolate_aggregates_tools.mirrored import chain
from isolate_aggregates_tools.operate.sync import plan, projects
from isolate_aggregates_tools.operate.sync.snapshot import read
from isolate_aggregates_tools.request import Request, resources

# A flavor, an image and a project, by their names.

# A project that owns nothing.
STRANGER = 'stranger'
DISABLED = 'COMPUTE_STATUS_DISABLED'


@dataclasses.dataclass(frozen=True)
class PlacedVm:
    """A server that uses some of a host.

    :param resources: What it uses, by resource class.
    """

    id: str
    host: str
    resources: Mapping[str, int]


class CloudCopy:
    """A copy of a cloud.

    :param snapshot: The cloud.
    :param conf: A configuration with our options, which is changed.
    """

    def __init__(self, snapshot, conf, servers=()):
        clouds.apply_settings(conf, snapshot)
        self.snapshot = snapshot
        self.servers = {server.id: server for server in servers}
        self._pipeline = chain.as_in_nova(conf)
        self._filters = Pipeline(loading.load(conf))

    def access(self, projects=(STRANGER,)):
        """Return who may use which hosts, while nothing is in use."""
        empty = dataclasses.replace(
            self.snapshot,
            providers=tuple(
                dataclasses.replace(provider, usages={})
                for provider in self.snapshot.providers
            ),
        )
        return {
            (flavor.name, image and image.name, project): self._hosts(
                empty, Request(flavor, image, project)
            )
            for flavor in self.snapshot.flavors
            for image in (None, *self.snapshot.images)
            for project in projects
        }

    def _hosts(self, snapshot, request):
        try:
            decision = decide(request, snapshot.index, self._pipeline)
            explained = explain(
                snapshot,
                resources.resource_request(request),
                decision.destination,
            )
        except (errors.InvalidRequest, exception.BadQuery):
            return frozenset()
        return frozenset(
            verdict.host
            for verdict in explained.verdicts
            if verdict.is_candidate
        )

    def permits(self, question, host):
        """Return whether the locks on a host let a request in.

        It is asked of the tags and of the hosts in Nova alone, whatever
        Placement knows of them.
        """
        flavor, image, project = question
        request = Request(
            self.snapshot.flavor(flavor),
            image and self.snapshot.image(image),
            project,
        )
        decision = decide(request, self.snapshot.index, self._pipeline)
        held = self.snapshot.index.aggregates_of.get(host, frozenset())
        return held.isdisjoint(decision.destination.forbidden_aggregates)

    def paste(self, line, after_each=lambda: None):
        """Carry out a line of commands, as if it were pasted into a shell.

        :param after_each: Called after each of the commands.
        """
        commands = read_by_bash(line)
        assert commands, line
        for words in commands:
            self._run(words)
            after_each()

    def _run(self, words):
        plain, options = _parsed(words)
        match plain:
            case ['isolate-aggregates', 'sync']:
                self._sync()
            case ['isolate-aggregates', 'key', 'add']:
                [trait] = options['trait']
                [flavor] = options['flavor']
                self._set_specs(flavor, {f'trait:{trait}': 'required'})
            case ['isolate-aggregates', 'provider', 'unset', uuid]:
                node = self._provider(uuid)
                self._change_provider(
                    uuid,
                    traits=node.traits.difference(options.get('trait', ())),
                    aggregates=node.aggregates.difference(
                        options.get('aggregate', ())
                    ),
                )
            case ['isolate-aggregates', 'lock', 'create', aggregate]:
                [trait] = options['trait']
                self._set_tags(aggregate, {f'trait:{trait}': 'required'})
                self._sync()
            case ['isolate-aggregates', 'reservation', 'host', 'set', *hosts]:
                # On those that are enabled, nothing is reserved yet.
                for aggregate in self.snapshot.aggregates:
                    if 'disable' in options and (
                        'trait:CUSTOM_RESERVATION_HOST' in aggregate.metadata
                    ):
                        self._set_hosts(
                            aggregate.name, frozenset(hosts).__rsub__
                        )
            case ['openstack', *rest]:
                self._client(rest, options)
            case _:
                raise AssertionError(f'what is {words}?')

    def _client(self, plain, options):
        match plain:
            case ['aggregate', 'set', name]:
                self._set_tags(name, _pairs(options['property']))
            case ['aggregate', 'unset', name]:
                self._set_tags(name, dict.fromkeys(options['property']))
            case ['aggregate', 'add', 'host', name, host]:
                self._set_hosts(name, frozenset({host}).union)
            case ['aggregate', 'remove', 'host', name, host]:
                self._set_hosts(name, lambda hosts: hosts - {host})
            case ['flavor', 'set', name]:
                self._set_specs(name, _pairs(options['property']))
            case ['flavor', 'unset', name]:
                self._set_specs(name, dict.fromkeys(options['property']))
            case ['flavor', 'delete', name]:
                gone = self.snapshot.flavor(name)
                self._replace('flavors', gone, None)
            case ['image', 'set', name]:
                self._set_properties(name, _pairs(options['property']))
            case ['image', 'unset', name]:
                self._set_properties(name, dict.fromkeys(options['property']))
            case ['compute', 'service', 'set', host, 'nova-compute']:
                assert 'enable' in options
                self._change_nodes(
                    host,
                    lambda node: dataclasses.replace(
                        node, traits=node.traits - {DISABLED}
                    ),
                )
            case ['resource', 'provider', 'delete', uuid]:
                self._replace('providers', self._provider(uuid), None)
            case ['trait', 'create', name]:
                self.snapshot = dataclasses.replace(
                    self.snapshot, traits=self.snapshot.traits | {name}
                )
            case ['resource', 'class', 'delete', _]:
                pass
            case ['server', 'list']:
                assert options['host']
            case ['server', 'migrate', server]:
                self._migrate(server)
            case ['server', 'shelve', server]:
                self._migrate(server)
            case ['server', 'migration', 'confirm', server]:
                assert server not in self.servers
            case _:
                raise AssertionError(f'what is openstack {plain}?')

    def _replace(self, field, old, new):
        things = [new if one is old else one for one in self._all(field)]
        results = tuple(one for one in things if one is not None)
        self.snapshot = dataclasses.replace(self.snapshot, **{field: results})

    def _all(self, field):
        return tuple(getattr(self.snapshot, field))

    def _aggregate(self, name):
        [found] = (
            [a for a in self.snapshot.aggregates if str(a.id) == name]
            or [a for a in self.snapshot.aggregates if a.name == name]
        )  # fmt: skip
        return found

    def _set_tags(self, name, tags):
        old = self._aggregate(name)
        new = dataclasses.replace(old, metadata=_put(old.metadata, tags))
        self._replace('aggregates', old, new)

    def _set_hosts(self, name, change):
        old = self._aggregate(name)
        new = dataclasses.replace(old, hosts=change(old.hosts))
        self._replace('aggregates', old, new)
        # As Nova does in Placement.
        for host in old.hosts ^ new.hosts:
            members = {new.uuid} if host in new.hosts else set()
            self._change_nodes(
                host,
                lambda node, members=members: dataclasses.replace(  # type: ignore[misc]
                    node, aggregates=node.aggregates - {new.uuid} | members
                ),
            )

    def _set_specs(self, name, specs):
        old = self.snapshot.flavor(name)
        new = dataclasses.replace(
            old, extra_specs=_put(old.extra_specs, specs)
        )
        self._replace('flavors', old, new)

    def _set_properties(self, name, properties):
        old = self.snapshot.image(name)
        new = dataclasses.replace(
            old, properties=_put(old.properties, properties)
        )
        self._replace('images', old, new)

    def _provider(self, uuid):
        [found] = [p for p in self.snapshot.providers if p.uuid == uuid]
        return found

    def _change_provider(self, uuid, **fields):
        old = self._provider(uuid)
        self._replace('providers', old, dataclasses.replace(old, **fields))

    def _change_nodes(self, host, change):
        for node in self.snapshot.providers:
            if node.host == host:
                self._replace('providers', node, change(node))

    def _sync(self):
        locks = self._filters.locks(self.snapshot.index)
        sync_plan = plan.make(read(SnapshotCloud(self.snapshot)), locks)
        for group in projects.updated(
            self.snapshot.aggregates, sync_plan.differences
        ):
            [old] = [
                a for a in self.snapshot.aggregates if a.uuid == group.uuid
            ]
            self._replace('aggregates', old, group)
        for target in sync_plan.targets:
            old = self._provider(target.provider)
            self._change_provider(
                old.uuid,
                traits=target.traits_after(old.traits),
                aggregates=target.aggregates_after(old.aggregates),
            )

    def _migrate(self, server):
        moved = self.servers.pop(server)
        self._change_nodes(
            moved.host,
            lambda node: dataclasses.replace(
                node,
                usages={
                    resource_class: used - moved.resources[resource_class]
                    for resource_class, used in node.usages.items()
                },
            ),
        )


def gained(before, after):
    """Return the hosts that each request may use in addition."""
    return {
        asked: hosts - before[asked]
        for asked, hosts in after.items()
        if hosts - before[asked]
    }


def _parsed(words):
    """Return the plain words of a command, and its options with values."""
    plain = []
    options = {}
    rest = iter(words)
    for word in rest:
        if word == '--':
            plain += rest
        elif not word.startswith('--'):
            plain.append(word)
        elif word[2:] in _FLAGS:
            options.setdefault(word[2:], [])
        else:
            name, equals, value = word[2:].partition('=')
            options.setdefault(name, []).append(
                value if equals else next(rest)
            )
    return plain, options


_FLAGS = ('all-projects', 'disable', 'enable', 'live-migration', 'wait')


def _pairs(texts):
    return {key: value for key, _, value in (t.partition('=') for t in texts)}


def _put(old, changes):
    merged = {**old, **changes}
    return {k: v for k, v in merged.items() if v is not None}
