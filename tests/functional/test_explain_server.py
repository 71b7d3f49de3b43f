# SPDX-License-Identifier: Apache-2.0
"""``isolate-aggregates explain --server`` asks a live cloud."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from explained import rows
from http_fakes import AUTH_URL, NOVA
from live_example import ISOLATE, Live
import pytest
import requests_mock

Run = Callable[..., Any]

SERVER = '9168b536-cd40-4630-b43f-b259807c6e87'


class LiveServer(Live):
    """The Windows licensing example as a live cloud with one server.

    :param http: Where its services answer.
    """

    def __init__(self, http: requests_mock.Mocker) -> None:
        super().__init__(http)
        self._http = http
        self.nova.newest = '2.100'

    def boots(self, **server: Any) -> None:
        """Have a server that was asked for so."""
        self._http.get(
            f'{NOVA}/servers/{SERVER}',
            json=lambda request, context: {
                'server': _server(request, **server)
            },
        )


def _server(
    request: Any,
    image: Mapping[str, str] | str = '',
    hints: Mapping[str, Any] | None = None,
    extra_specs: Mapping[str, str] | None = None,
    disk: int = 20,
) -> dict[str, Any]:
    """Return a server as Nova shows it in the microversion asked for."""
    found: dict[str, Any] = {
        'id': SERVER,
        'name': 'failed',
        'status': 'ERROR',
        'tenant_id': 'a-project',
        'image': image,
        'flavor': {
            # Not the flavor of that name any more: it has been changed.
            'original_name': 'm1.small',
            'vcpus': 1,
            'ram': 2048,
            'disk': disk,
            'ephemeral': 0,
            'swap': 0,
            'extra_specs': dict(extra_specs or {}),
        },
    }
    if request.headers['OpenStack-API-Version'] == 'compute 2.100':
        found['scheduler_hints'] = dict(hints or {})
    return found


@pytest.fixture
def live(http: requests_mock.Mocker) -> Iterator[LiveServer]:
    """The example as a live cloud."""
    cloud = LiveServer(http)
    yield cloud
    cloud.stop()


@pytest.fixture
def explain_live(
    run: Run, in_environment: None, config: Callable[[str], str]
) -> Run:
    """Explain with the credentials of the administrator."""
    path = config(
        f'{ISOLATE}placement_req_required_member_prefix = rack:\n'
        '[isolate_aggregates]\nreservation_key_sources = hint\n'
    )
    asked = ('--config-file', path, 'explain', '--hosts')
    return lambda *arguments: run(*asked, *arguments)


def test_a_server_stands_for_its_flavor_and_image(
    live: LiveServer, explain_live: Run
) -> None:
    live.boots(image={'id': live.images['windows-2022']})
    finished = explain_live('--server', SERVER)
    assert (finished.code, finished.err) == (0, '')
    found = rows(finished)
    assert found['linux-1'] == 'has no trait CUSTOM_LICENSED_WINDOWS'
    assert [h for h, said in found.items() if said == 'candidate'] == [
        'win-1',
        'win-2',
    ]


def test_its_flavor_is_the_one_it_was_asked_for_with(
    live: LiveServer, explain_live: Run
) -> None:
    live.boots(
        image={'id': live.images['debian-12']},
        extra_specs={'resources:VGPU': '1'},
    )
    found = rows(explain_live('--server', SERVER))
    assert found['linux-1'] == 'VGPU: has none'


def test_without_an_image_it_boots_from_a_volume(
    live: LiveServer, explain_live: Run
) -> None:
    live.boots(disk=5000)
    found = rows(explain_live('--server', SERVER))
    assert found['linux-1'] == 'candidate'
    assert found['win-1'].startswith('in aggregate win-hosts, ')
    live.boots(image={'id': live.images['debian-12']}, disk=5000)
    found = rows(explain_live('--server', SERVER))
    assert found['linux-1'] == (
        'DISK_GB: asks 5000, free 1000 (1000 total x 1.0 - 0 used)'
    )


@pytest.mark.parametrize(
    ('newest', 'err'),
    [
        pytest.param('2.100', '', id='a Nova that tells hints'),
        pytest.param(
            '2.96',
            'Nova before 2.100 does not tell the scheduler hints of server '
            f'{SERVER}; give them with --hint if it had any.\n',
            id='an older Nova',
        ),
    ],
)
def test_the_hints_of_a_server_count_where_nova_tells_them(
    live: LiveServer, explain_live: Run, newest: str, err: str
) -> None:
    live.nova.newest = newest
    live.boots(
        image={'id': live.images['debian-12']}, hints={'rack:9': 'true'}
    )
    refused = (
        'no aggregate has the metadata key rack:9, which the request names'
    )
    finished = explain_live('--server', SERVER)
    assert (finished.code, finished.err) == (0, err)
    assert rows(finished)['linux-1'] == ('candidate' if err else refused)
    # Given by hand they count in any case.
    finished = explain_live('--server', SERVER, '--hint', 'rack:9=true')
    assert rows(finished)['linux-1'] == refused


def test_what_is_given_goes_before_what_the_server_has(
    live: LiveServer, explain_live: Run
) -> None:
    live.boots(
        image={'id': live.images['debian-12']}, hints={'rack:9': 'true'}
    )
    finished = explain_live(
        *('--server', SERVER, '--image', 'windows-2022', '--host', 'win-1'),
        *('--hint', 'rack:9='),
    )
    assert rows(finished)['linux-1'] == (
        'no aggregate has the metadata key rack:9, which the request names; '
        "not in the requested host's tree: host win-1 was requested; "
        'has no trait CUSTOM_LICENSED_WINDOWS'
    )


def test_an_unknown_server_is_named(
    live: LiveServer, explain_live: Run, http: requests_mock.Mocker
) -> None:
    http.get(
        f'{NOVA}/servers/{SERVER}',
        status_code=404,
        json={
            'itemNotFound': {
                'code': 404,
                'message': f'Instance {SERVER} could not be found.',
            }
        },
    )
    finished = explain_live('--server', SERVER)
    assert (finished.code, finished.out) == (1, '')
    assert finished.err == (
        f"There is no server with the name or id '{SERVER}' in Nova at "
        f'{NOVA}.\n'
    )


def test_a_nova_that_tells_no_flavors_of_servers_is_too_old(
    live: LiveServer, explain_live: Run
) -> None:
    live.nova.newest = '2.60'
    finished = explain_live('--server', SERVER)
    assert (finished.code, finished.out) == (1, '')
    assert finished.err == (
        f'Nova at {NOVA} offers microversions up to 2.60; reading the flavor '
        'a server was booted with needs 2.61 (Rocky).\n'
    )


def test_production_is_only_read(
    live: LiveServer, explain_live: Run, http: requests_mock.Mocker
) -> None:
    live.boots(image={'id': live.images['debian-12']})
    http.reset_mock()
    explain_live('--server', SERVER)
    assert {
        request.method
        for request in http.request_history
        if not request.url.startswith(AUTH_URL)
    } == {'GET'}
