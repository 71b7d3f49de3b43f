# SPDX-License-Identifier: Apache-2.0
"""Where the host aggregates are read from."""

from importlib import metadata

import pytest
from stevedore import named

from isolate_aggregates import exception
from isolate_aggregates.aggregates import (
    Aggregate,
    AggregateIndex,
    sources,
)
from isolate_aggregates.compute import NovaclientSource


def never():
    raise AssertionError('there is nothing to connect to')


def use(conf, **options):
    for name, value in options.items():
        conf.set_override(name, value, 'isolate_aggregates')


def test_an_unknown_source_is_refused_with_those_installed(conf):
    use(conf, aggregate_source='ldap')
    with pytest.raises(exception.ConfigError) as caught:
        sources.load(conf, never)
    assert str(caught.value).startswith(
        'Configuration option [isolate_aggregates] aggregate_source names '
        'ldap, which is not installed; choose from '
    )


def test_a_source_that_cannot_be_imported_is_refused_with_the_reason(
    conf, monkeypatch
):
    broken = metadata.EntryPoint(
        'broken', 'no_such_module:Source', sources.NAMESPACE
    )
    monkeypatch.setattr(
        named.NamedExtensionManager, 'list_entry_points', lambda self: [broken]
    )
    use(conf, aggregate_source='broken')
    with pytest.raises(exception.ConfigError) as caught:
        sources.load(conf, never)
    assert str(caught.value) == (
        'Configuration option [isolate_aggregates] aggregate_source names '
        'broken, which cannot be loaded from no_such_module:Source: No '
        "module named 'no_such_module'."
    )


def no_source(conf, connect):
    return 'nothing that has aggregates'


def test_an_invalid_source_is_refused_with_the_missing_method(
    conf, monkeypatch
):
    wrong = metadata.EntryPoint(
        'wrong', f'{__name__}:no_source', sources.NAMESPACE
    )
    monkeypatch.setattr(
        named.NamedExtensionManager, 'list_entry_points', lambda self: [wrong]
    )
    with pytest.raises(exception.ConfigError) as caught:
        sources.load(conf, never, 'wrong')
    assert str(caught.value).endswith(
        'wrong, which is not an aggregate source: str has no method '
        'aggregates().'
    )


class WithHosts:
    """A source that returns aggregates with their hosts."""

    def aggregates(self):
        return [
            Aggregate('uuid-1', 'a', hosts=frozenset({'h1', 'h2'})),
            Aggregate('uuid-2', 'b', hosts=frozenset({'h2'})),
        ]


class WithMembership(WithHosts):
    """A source that implements Membership."""

    def aggregates_of(self, hosts):
        return {}


def test_hosts_are_those_of_the_aggregates():
    source = WithHosts()
    members = sources.membership(
        source, lambda: AggregateIndex(source.aggregates())
    )
    assert members.aggregates_of(['h2', 'h3']) == {
        'h2': {'uuid-1', 'uuid-2'}, 'h3': set()
    }  # fmt: skip


def test_a_source_can_provide_the_hosts():
    source = WithMembership()
    assert sources.membership(source, AggregateIndex) is source


def test_the_sources_that_need_no_nova_are_registered():
    found = metadata.entry_points(group=sources.NAMESPACE)
    assert found['novaclient'].load() is NovaclientSource
