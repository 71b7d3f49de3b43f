# SPDX-License-Identifier: Apache-2.0
"""A cloud whose Placement is behind a real web server."""

import big_cloud
from cloud_fixtures import *  # noqa: F403
from http_fakes import NOVA
import pytest
import requests_mock
import web_servers


@pytest.fixture(
    scope='module',
    params=[web_servers.GUNICORN, web_servers.UWSGI],
    ids=lambda server: server.name,
)
def web_server(request, tmp_path_factory):
    """A Placement under each web server."""
    if not request.param.is_installed():
        pytest.skip(f'{request.param.name} is not installed')
    folder = tmp_path_factory.mktemp(request.param.name)
    with web_servers.running(request.param, folder) as found:
        yield found


@pytest.fixture
def placement(web_server):
    """A Placement that has the hosts and nothing else."""
    big_cloud.load(web_server.database)
    return web_server


@pytest.fixture
def command(placement, run, tmp_path, monkeypatch):
    """Run ``isolate-aggregates`` with that Placement."""
    # novaclient writes files for its shell completion.
    monkeypatch.setenv('NOVACLIENT_UUID_CACHE_DIR', str(tmp_path))
    configuration = tmp_path / 'live.conf'

    def run_program(*arguments, max_query_length=0):
        configuration.write_text(
            '[scheduler]\nenable_isolated_aggregate_filtering = true\n'
            '[isolate_aggregates]\n'
            f'max_query_length = {max_query_length}\n',
            'utf-8',
        )
        return run(
            '--os-auth-type=admin_token',
            f'--os-token={web_servers.TOKEN}',
            f'--os-endpoint={NOVA}',
            f'--os-compute-endpoint-override={NOVA}',
            f'--os-placement-endpoint-override={placement.url}',
            f'--config-file={configuration}',
            *arguments,
        )

    with requests_mock.Mocker(case_sensitive=True) as http:
        big_cloud.answer(http, placement.url)
        yield run_program
