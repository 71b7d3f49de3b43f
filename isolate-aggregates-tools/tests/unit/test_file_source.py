# SPDX-License-Identifier: Apache-2.0
"""Where commands read the host aggregates from."""

from importlib import metadata

from http_fakes import connection
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import (
    Aggregate,
    sources,
)
from isolate_aggregates.compute import NovaclientSource
from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.cloud.file.source import FileSource
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud


def never():
    raise AssertionError('there is nothing to connect to')


def use(conf, **options):
    for name, value in options.items():
        conf.set_override(name, value, 'isolate_aggregates')


def test_nova_is_the_default_source(conf, http, nova):
    nova.aggregates = [Aggregate('uuid-1', 'a', {'trait:X': 'required'}, id=1)]
    nova.answer(http)
    source = sources.load(conf, connection)
    assert isinstance(source, NovaclientSource)
    assert source.aggregates() == nova.aggregates


def test_outside_the_scheduler_the_api_replaces_its_source(conf, http, nova):
    """A command can be given the nova.conf of nova-scheduler."""
    nova.aggregates = [Aggregate('uuid-1', 'a', {}, id=1)]
    nova.answer(http)
    use(conf, aggregate_source='nova')
    assert list(LiveCloud(conf, connection).index) == nova.aggregates


def test_a_cloud_file_is_read_without_connecting_to_anything(
    conf, write_cloud
):
    path = write_cloud('aggregates: [{name: win-hosts, hosts: [win-1]}]')
    use(conf, aggregate_source='file', cloud_file=str(path))
    source = sources.load(conf, never)
    assert isinstance(source, FileSource)
    [aggregate] = source.aggregates()
    assert (aggregate.name, aggregate.hosts) == ('win-hosts', {'win-1'})


def test_a_cloud_file_is_read_again_each_time(conf, write_cloud):
    path = write_cloud('aggregates: [{name: before}]')
    use(conf, aggregate_source='file', cloud_file=str(path))
    source = sources.load(conf, never)
    assert [a.name for a in source.aggregates()] == ['before']
    write_cloud('aggregates: [{name: after}]')
    assert [a.name for a in source.aggregates()] == ['after']


def test_a_removed_cloud_file_is_an_error(conf, write_cloud):
    path = write_cloud('aggregates: []')
    use(conf, aggregate_source='file', cloud_file=str(path))
    source = sources.load(conf, never)
    path.unlink()
    with pytest.raises(tools_errors.CloudFileError) as caught:
        source.aggregates()
    assert str(caught.value) == (
        f'{path} cannot be read: No such file or directory.'
    )


def test_the_file_source_reports_a_missing_option(conf):
    use(conf, aggregate_source='file')
    with pytest.raises(exception.ConfigError) as caught:
        sources.load(conf, never)
    assert str(caught.value) == (
        'Configuration option [isolate_aggregates] cloud_file is not set, '
        'but aggregate_source = file requires it.'
    )


def test_the_file_source_is_registered():
    found = metadata.entry_points(group=sources.NAMESPACE)
    assert found['file'].load() is FileSource
