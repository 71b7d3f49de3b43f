# SPDX-License-Identifier: Apache-2.0
"""``isolate-aggregates explain --server`` asks a live cloud."""

from collections.abc import Mapping
import json
import re
from urllib import parse
import uuid

from cases import cases
from explained import rows
from http_fakes import AUTH_URL, ENDPOINTS, GLANCE, NOVA, FakeKeystone
from live_example import ISOLATE, Live
import pytest
import requests

NEUTRON = 'http://neutron.test'
CYBORG = 'http://cyborg.test/accelerator'
SERVER = '9168b536-cd40-4630-b43f-b259807c6e87'


class LiveServer(Live):
    """The Windows licensing example as a live cloud with one server.

    :param http: Where its services answer.
    """

    def __init__(self, http):
        super().__init__(http)
        self._http = http
        self.nova.newest = '2.100'

    def boots(self, **server):
        """Create a server with this request."""
        self._http.get(
            f'{NOVA}/servers/{SERVER}',
            json=lambda request, context: {
                'server': _server(request, **server)
            },
        )

    def server(self):
        """Return the server as Nova describes it."""
        answer = requests.get(
            f'{NOVA}/servers/{SERVER}',
            headers={'OpenStack-API-Version': 'compute 2.100'},
            timeout=60,
        )
        return answer.json()['server']

    def has_names(self, names):
        """Answer for the names of servers, by their ids."""
        matches = re.compile(f'{re.escape(NOVA)}/servers/.+')
        self._http.get(matches, status_code=404, json={})
        self.boots(image={'id': self.images['windows-2022']})

        def listed(request, context):
            [pattern] = parse.parse_qs(parse.urlsplit(request.url).query)[
                'name'
            ]
            return {
                'servers': [
                    {'id': number, 'name': name}
                    for number, name in names.items()
                    # As in MariaDB.
                    if re.search(pattern, name, re.IGNORECASE)
                ]
            }

        self._http.get(f'{NOVA}/servers?all_tenants=1', json=listed)

    def segment(self, *aggregates):
        """Make the provider of a segment in Placement; return its uuid."""
        made = str(uuid.uuid4())
        uuids = [a.uuid for a in self.nova.aggregates if a.name in aggregates]
        for method, path, body in (
            ('POST', '', {'uuid': made, 'name': made}),
            (
                'PUT',
                f'/{made}/aggregates',
                {'aggregates': uuids, 'resource_provider_generation': 0},
            ),
        ):
            requests.request(
                method,
                f'{self.placement_url}/resource_providers{path}',
                json=body,
                headers=ADMIN,
                timeout=60,
            ).raise_for_status()
        return made

    def has_ports(self, server_id, *ports):
        """Run a fake Neutron with these ports of a server."""
        FakeKeystone(
            self._http,
            {
                **ENDPOINTS,
                'placement': self.placement_url,
                'network': NEUTRON,
                'accelerator': CYBORG,
            },
        )
        self._http.get(
            f'{NEUTRON}/v2.0/ports?device_id={server_id}',
            json={'ports': list(ports)},
        )

    def has_segments(self, network, *segments):
        """Add a network with a subnet on each of these segments."""
        self._http.get(
            f'{NEUTRON}/v2.0/subnets?network_id={network}',
            json={'subnets': [{'segment_id': each} for each in segments]},
        )

    def has_profile(self, name, *groups):
        """Run a fake Cyborg with a device profile."""
        self._http.get(
            f'{CYBORG}/v2/device_profiles?name={name}',
            json={'device_profiles': [{'name': name, 'groups': groups}]},
        )


def _server(
    request,
    image='',
    hints=None,
    extra_specs=None,
    disk=20,
    zone=None,
    host=None,
):
    """Return a server in the format of the requested microversion."""
    found = {
        'id': SERVER,
        'name': 'failed',
        'status': 'ERROR',
        'tenant_id': 'a-project',
        'image': image,
        'flavor': {
            # The flavor of this name has been changed since.
            'original_name': 'm1.small',
            'vcpus': 1,
            'ram': 2048,
            'disk': disk,
            'ephemeral': 0,
            'swap': 0,
            'extra_specs': dict(extra_specs or {}),
        },
    }
    # The zone of its host, once it has a host.
    found['OS-EXT-AZ:availability_zone'] = 'az-here' if host else zone or ''
    found['OS-EXT-SRV-ATTR:host'] = host
    minor = int(request.headers['OpenStack-API-Version'].partition('.')[2])
    if minor >= 96:
        found['pinned_availability_zone'] = zone
    if minor < 98 and isinstance(image, Mapping):
        found['image'] = {'id': image['id']}
    if minor >= 100:
        found['scheduler_hints'] = dict(hints or {})
    return found


@pytest.fixture
def live(http):
    """The example as a live cloud."""
    cloud = LiveServer(http)
    yield cloud
    cloud.stop()


@pytest.fixture
def explain_live(run, in_environment, config):
    """Explain with the credentials of the administrator."""
    path = config(
        f'{ISOLATE}placement_req_required_member_prefix = rack:\n'
        '[isolate_aggregates]\nreservation_key_sources = hint\n'
    )
    words = ('--config-file', path, 'explain', '--hosts')
    return lambda *arguments: run(*words, *arguments)


def test_the_flavor_of_a_server_without_a_host_is_corrected(
    live, explain_live
):
    live.boots(extra_specs={'trait:CUSTOM_NOWHERE': 'required'})
    out = explain_live('--server', SERVER).out
    assert 'Any one of these gives it a host:' in out
    assert 'A server has copies of its flavor and image; ' in out


def test_a_server_is_explained_though_images_cannot_be_listed(
    live, explain_live, http
):
    live.boots(extra_specs={'trait:CUSTOM_NOWHERE': 'required'})
    http.get(re.compile(f'{GLANCE}/v2/images($|\\?)'), status_code=403)
    result = explain_live('--server', SERVER)
    assert (result.code, result.err) == (4, '')
    assert rows(result)['linux-1'] == 'has no trait CUSTOM_NOWHERE'
    assert (
        'which flavors and images there are, so that nothing is corrected in '
        'them: Glance at '
    ) in result.out


def test_a_server_provides_its_flavor_and_image(live, explain_live):
    live.boots(image={'id': live.images['windows-2022']})
    result = explain_live('--server', SERVER)
    assert (result.code, result.err) == (0, '')
    table = rows(result)
    assert table['linux-1'] == 'has no trait CUSTOM_LICENSED_WINDOWS'
    assert [h for h, said in table.items() if said == 'candidate'] == [
        'win-1',
        'win-2',
    ]


OTHER = '5f0b7c7e-9d8f-4f0f-8a3e-0c9d0a6b2f11'


def test_a_server_is_found_by_its_name(live, explain_live):
    live.has_names({SERVER: 'web (1)', OTHER: 'WEB (1)'})
    result = explain_live('--server', 'web (1)')
    assert (result.code, result.err) == (0, '')
    assert rows(result)['win-1'] == 'candidate'


def test_a_name_of_several_servers_is_refused_with_their_ids(
    live, explain_live
):
    live.has_names({SERVER: 'web', OTHER: 'web'})
    result = explain_live('--server', 'web')
    assert (result.code, result.out) == (1, '')
    assert result.err == (
        f"The server name 'web' is not unique; name one of {OTHER}, {SERVER} "
        'instead.\n'
    )


def test_a_name_of_no_server_is_refused(live, explain_live):
    live.has_names({SERVER: 'Web', OTHER: 'web-2'})
    result = explain_live('--server', 'web')
    assert (result.code, result.out) == (1, '')
    assert result.err == (
        f"There is no server with the name or id 'web' in Nova at {NOVA}.\n"
    )


def test_the_flavor_is_the_one_recorded_with_the_server(live, explain_live):
    live.boots(
        image={'id': live.images['debian-12']},
        extra_specs={'resources:VGPU': '1'},
    )
    table = rows(explain_live('--server', SERVER))
    assert table['linux-1'] == 'VGPU: has none'


def test_without_an_image_it_boots_from_a_volume(live, explain_live):
    live.boots(disk=5000)
    result = explain_live('--server', SERVER)
    table = rows(result)
    assert table['linux-1'] == 'candidate'
    assert (
        f'the image of the volume that server {SERVER} boots from; specify it '
        'with --image if it has relevant properties'
    ) in not_known(result)
    assert table['win-1'].startswith('in aggregate win-hosts, ')
    live.boots(image={'id': live.images['debian-12']}, disk=5000)
    table = rows(explain_live('--server', SERVER))
    assert table['linux-1'] == (
        'DISK_GB: requested 5000, free 1000 (1000 total x 1.0 - 0 used)'
    )


@cases(
    ('newest', 'err'),
    {
        'a Nova that tells hints': ('2.100', ''),
        'an older Nova': (
            '2.96',
            'Nova before microversion 2.100 does not show the scheduler hints '
            f'of server {SERVER}; give them with --hint if it had any.\n',
        ),
    },
)
def test_hints_of_a_server_count_if_nova_returns_them(
    live, explain_live, newest, err
):
    live.nova.newest = newest
    live.boots(
        image={'id': live.images['debian-12']}, hints={'rack:9': 'true'}
    )
    refused = (
        'no aggregate has the metadata key rack:9, which the request names'
    )
    result = explain_live('--server', SERVER)
    assert (result.code, result.err) == (0 if err else 4, err)
    assert rows(result)['linux-1'] == ('candidate' if err else refused)
    # Hints on the command line are always used.
    result = explain_live('--server', SERVER, '--hint', 'rack:9=true')
    assert rows(result)['linux-1'] == refused


# How the tests reach Placement without a Keystone.
ADMIN = {
    'X-Auth-Token': 'admin',
    'OpenStack-API-Version': 'placement 1.20',
}
HOST_FILTERS = (
    'which host filters run after Placement: [filter_scheduler] '
    'enabled_filters is not set here; specify the nova.conf of nova-scheduler '
    'with --config-file (openstack: --os-isolation-config-file)'
)


def not_known(result):
    """Return the unknown data in a table, except that of host filters."""
    _, _, after = result.out.partition('Not known here:\n')
    lines = after.partition('\n\n')[0].splitlines()
    *others, last = [line.strip() for line in lines]
    assert last == HOST_FILTERS
    return others


def test_a_server_is_told_that_its_zone_is_locked(live, explain_live):
    live.boots(
        image={'id': live.images['debian-12']},
        # linux-1 is the only other host of the zone.
        extra_specs={'trait:CUSTOM_LICENSED_LINUX': 'required'},
        zone='az-1',
    )
    result = explain_live('--server', SERVER)
    table = rows(result)
    assert table['win-1'].startswith('in aggregate win-hosts, locked by')
    assert table['linux-1'] == 'has no trait CUSTOM_LICENSED_LINUX'
    assert table['linux-2'].startswith(
        'not in aggregate rack-1: availability zone az-1 was requested'
    )


@cases(
    ('newest', 'host', 'said', 'told'),
    {
        'it': ('2.100', 'x', 'not in aggregate rack-1', False),
        'old': ('2.95', None, 'not in aggregate rack-1', False),
        'old, on a host': ('2.95', 'x', 'candidate', True),
    },
)
def test_a_server_keeps_its_own_zone(
    live, explain_live, newest, host, said, told
):
    live.nova.newest = newest
    live.boots(image={'id': live.images['debian-12']}, zone='az-1', host=host)
    result = explain_live('--server', SERVER)
    assert rows(result)['linux-2'].startswith(said)
    zone = (
        f'the availability zone that server {SERVER} was requested in, which '
        'Nova shows only from microversion 2.96; specify it with '
        '--availability-zone if there was one'
    )
    assert (zone in not_known(result)) == told
    given = explain_live('--server', SERVER, '--availability-zone', 'az-1')
    assert rows(given)['linux-2'].startswith('not in aggregate rack-1')
    assert zone not in not_known(given)


def test_image_properties_kept_by_the_server_count(live, explain_live):
    image = {
        'id': live.images['windows-2022'],
        # Glance has none of these now, and Nova returns no others.
        'properties': {'os_secure_boot': 'required'},
    }
    live.boots(image=image)
    table = rows(explain_live('--server', SERVER))
    assert table['win-1'] == ('has no trait COMPUTE_SECURITY_UEFI_SECURE_BOOT')
    assert table['linux-1'].endswith('has no trait CUSTOM_LICENSED_WINDOWS')
    live.nova.newest = '2.97'
    assert rows(explain_live('--server', SERVER))['win-1'] == 'candidate'


def test_a_server_whose_image_was_deleted_is_explained(live, explain_live):
    gone = '00000000-0000-4000-8000-0000000000ff'
    live.boots(
        image={'id': gone, 'properties': {'os_secure_boot': 'required'}},
        disk=5000,
    )
    result = explain_live('--server', SERVER)
    table = rows(result)
    assert 'has no trait COMPUTE_SECURITY_UEFI_SECURE_BOOT' in table['linux-1']
    # It does not boot from a volume.
    assert 'DISK_GB: requested 5000' in table['linux-1']
    assert f'the properties of image {gone}, ' in '; '.join(not_known(result))


PORT = '1b2a6a8e-0f0c-4d6f-8b7c-5f7a3e2d1c0b'


def test_resource_requests_of_ports_count(live, explain_live):
    live.boots(image={'id': live.images['debian-12']})
    result = explain_live('--server', SERVER)
    assert rows(result)['linux-1'] == 'candidate'
    assert not_known(result)[-1].startswith(
        f'what the ports of server {SERVER} request: Neutron'
    )
    live.has_ports(
        SERVER,
        {
            'id': PORT,
            'network_id': 'net',
            'fixed_ips': [],
            'binding:vnic_type': 'remote-managed',
            'resource_request': {
                'request_groups': [
                    {
                        'id': PORT,
                        'required': ['CUSTOM_PHYSNET_X'],
                        'resources': {'NET_BW_EGR_KILOBIT_PER_SEC': 1000},
                    }
                ],
                'same_subtree': [PORT],
            },
        },
    )
    result = explain_live('--server', SERVER)
    assert rows(result)['linux-1'] == (
        f'has no trait COMPUTE_REMOTE_MANAGED_PORTS: port {PORT} is '
        'remote-managed, which requires trait COMPUTE_REMOTE_MANAGED_PORTS on '
        f'the host; group {PORT}: has no trait CUSTOM_PHYSNET_X; '
        f'group {PORT}: NET_BW_EGR_KILOBIT_PER_SEC: has none'
    )
    assert not any('ports' in each for each in not_known(result))


def test_hidden_resource_requests_of_ports_are_reported_as_unknown(
    live, explain_live
):
    live.boots(image={'id': live.images['debian-12']})
    told = port('p1', 'flat')
    del told['binding:host_id']
    live.has_ports(SERVER, told)
    assert not_known(explain_live('--server', SERVER))[-1] == (
        f'what the ports of server {SERVER} request: Neutron at {NEUTRON} '
        'does not show the resource requests of ports; use credentials with '
        'the admin role'
    )


def test_a_server_without_ports_leaves_its_networks_unknown(
    live, explain_live
):
    live.boots(image={'id': live.images['debian-12']})
    live.has_ports(SERVER)
    assert not_known(explain_live('--server', SERVER)) == [
        f'whether a host was requested for server {SERVER}, which Nova does '
        'not show; if so, specify it with --host',
        f'the networks that server {SERVER} was requested with: it has no '
        'ports now; specify what they requested with --port-request',
    ]


def port(name, network):
    """Return a port without a resource request."""
    return {
        'id': name,
        'network_id': network,
        'fixed_ips': [],
        'binding:host_id': '',
    }


def test_a_routed_network_keeps_a_server_on_its_segments(
    live, run, in_environment, config, http
):
    path = config(
        '[scheduler]\nquery_placement_for_routed_network_aggregates = true\n'
    )

    def explain(*ports):
        live.has_ports(SERVER, *ports)
        return run(
            *('--config-file', path, 'explain', '--hosts'),
            *('--server', SERVER),
        )

    live.boots(image={'id': live.images['debian-12']})
    # Each segment is a provider in an aggregate of Placement.
    live.has_segments('flat', None)
    live.has_segments('routed', live.segment('rack-1'))
    assert rows(explain(port('p1', 'flat')))['linux-2'] == 'candidate'
    table = rows(explain(port('p1', 'flat'), port('p2', 'routed')))
    assert table['linux-1'] == 'candidate'
    assert table['linux-2'] == (
        'not in aggregate rack-1: port p2 is routed, and its segments are '
        'there'
    )
    live.has_segments('odd', live.segment())
    table = rows(explain(port('p3', 'odd')))
    assert table['linux-1'] == (
        'a segment of the network of port p3 has no aggregate'
    )
    live.has_segments('gone', str(uuid.uuid4()))
    table = rows(explain(port('p5', 'gone')))
    assert table['linux-1'] == (
        'a segment of the network of port p5 has no aggregate'
    )
    # Neutron fails for this network.
    http.get(f'{NEUTRON}/v2.0/subnets?network_id=dark', status_code=500)
    assert not_known(explain(port('p4', 'dark')))[-1] == (
        'the segments of port p4, whose aggregates Nova requires, are not '
        'known'
    )


def test_a_device_profile_adds_resources(live, explain_live):
    live.boots(
        image={'id': live.images['debian-12']},
        extra_specs={'accel:device_profile': 'fpga'},
    )
    live.has_ports(SERVER, {**port('p1', 'flat'), 'device_profile': 'nic'})
    group = {'resources:FPGA': '1', 'trait:CUSTOM_F': 'required', 'x:y': 'z'}
    live.has_profile('fpga', group)
    # Nova reads the amount with int().
    live.has_profile('nic', {'resources:CUSTOM_NIC': ' +1'})
    table = rows(explain_live('--server', SERVER))
    for text in (
        'has no trait COMPUTE_ACCELERATORS: ',
        'group device_profile_0: has no trait CUSTOM_F',
        'group device_profile_0: FPGA: has none',
        'group device_profile_0p1: CUSTOM_NIC: has none',
    ):
        assert text in table['linux-1']


def test_an_owner_trait_that_may_be_required_is_reported(
    live, explain_live, http
):
    live.nova.newest = '2.104'
    live.boots(image={'id': live.images['debian-12']})
    live.has_ports(SERVER, port('p1', 'flat'))
    result = explain_live('--server', SERVER)
    # No compute node has the trait, so Nova does not require it.
    assert not any('OWNER_NOVA' in each for each in not_known(result))
    node = live.nova.nodes[0].uuid
    path = f'{live.placement_url}/resource_providers/{node}'
    answer = requests.get(f'{path}/traits', headers=ADMIN, timeout=60).json()
    answer['traits'].append('OWNER_NOVA')
    requests.put(
        f'{path}/traits', json=answer, headers=ADMIN, timeout=60
    ).raise_for_status()
    result = explain_live('--server', SERVER)
    assert not_known(result)[-1] == (
        'whether Nova requires trait OWNER_NOVA, which 4 of 5 compute nodes '
        'lack: it does once all compute services run release 34'
    )
    owned = f'{live.placement_url}/resource_providers?required=OWNER_NOVA'
    http.get(owned, status_code=403)
    result = explain_live('--server', SERVER)
    assert not_known(result)[-1].startswith(
        'whether Nova requires trait OWNER_NOVA: Placement'
    )


@pytest.mark.parametrize(
    ('extra_spec', 'trait'),
    [
        ({'hw:sound_model': 'virtio'}, 'COMPUTE_SOUND_MODEL_VIRTIO'),
        ({'hw:mem_encryption': 'true'}, 'HW_CPU_X86_AMD_SEV'),
    ],
)
def test_differences_between_two_releases_are_reported(
    live, explain_live, extra_spec, trait
):
    live.boots(image={'id': live.images['debian-12']}, extra_specs=extra_spec)
    live.has_ports(SERVER, port('p1', 'flat'))
    result = explain_live('--server', SERVER)
    # The newer release adds more to the query.
    assert trait in rows(result)['linux-1']
    assert (
        'whether Nova is of release 31 or 32, which require different traits '
        'here; set [isolate_aggregates] nova_release'
    ) in not_known(result)
    live.boots(image={'id': live.images['debian-12']})
    assert not any(
        'release' in each
        for each in not_known(explain_live('--server', SERVER))
    )


def test_options_take_precedence_over_the_server(live, explain_live):
    live.boots(
        image={'id': live.images['debian-12']}, hints={'rack:9': 'true'}
    )
    result = explain_live(
        *('--server', SERVER, '--image', 'windows-2022', '--host', 'win-1'),
        *('--hint', 'rack:9='),
    )
    assert rows(result)['linux-1'] == (
        'no aggregate has the metadata key rack:9, which the request names; '
        "not in the requested host's tree: host win-1 was requested; "
        'has no trait CUSTOM_LICENSED_WINDOWS'
    )


def test_an_unknown_server_is_named(live, explain_live, http):
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
    http.get(f'{NOVA}/servers?all_tenants=1', json={'servers': []})
    result = explain_live('--server', SERVER)
    assert (result.code, result.out) == (1, '')
    assert result.err == (
        f"There is no server with the name or id '{SERVER}' in Nova at "
        f'{NOVA}.\n'
    )


def test_a_nova_that_omits_flavors_of_servers_is_too_old(live, explain_live):
    live.nova.newest = '2.60'
    result = explain_live('--server', SERVER)
    assert (result.code, result.out) == (1, '')
    assert result.err == (
        f'Nova at {NOVA} offers microversions up to 2.60; reading the flavor '
        'a server was booted with needs 2.61 (Rocky).\n'
    )


def test_explain_only_reads_from_the_cloud(live, explain_live, http):
    live.boots(image={'id': live.images['debian-12']})
    http.reset_mock()
    explain_live('--server', SERVER)
    assert {
        request.method
        for request in http.request_history
        if not request.url.startswith(AUTH_URL)
    } == {'GET'}


# A cloud file.


def listed(*things):
    """Return what answers with two pages of a list."""

    def answer(request, context):
        [kind] = re.findall(r'/v2.0/(\w+)', request.url)
        [marker] = request.qs.get('marker', [None])
        ids = [thing['id'] for thing in things]
        start = ids.index(marker) + 1 if marker else 0
        return {kind: things[start : start + 1]}

    return answer


def test_a_file_explains_a_server_as_the_cloud_does(
    live, run, in_environment, config, http, tmp_path
):
    path = config(
        '[scheduler]\nenable_isolated_aggregate_filtering = true\n'
        'query_placement_for_routed_network_aggregates = true\n'
    )
    routed = {
        **port('p1', 'routed'),
        'device_id': SERVER,
        'device_owner': 'compute:az-1',
        'fixed_ips': [{'subnet_id': 's1'}],
        'resource_request': {
            'request_groups': [
                {
                    'id': PORT,
                    'required': ['CUSTOM_PHYSNET_X'],
                    'resources': {'NET_BW_EGR_KILOBIT_PER_SEC': 1000},
                }
            ],
            'same_subtree': [PORT],
        },
    }
    gateway = {**port('p2', 'routed'), 'device_owner': 'network:router'}
    segment = live.segment('rack-1')
    subnet = {'id': 's1', 'network_id': 'routed', 'segment_id': segment}
    live.boots(
        image={'id': live.images['windows-2022']}, hints={'a': ['b', 'c']}
    )
    live.has_ports(SERVER, routed)
    subnets = f'{NEUTRON}/v2.0/subnets'
    http.get(f'{subnets}?id=s1', json={'subnets': [subnet]})
    other = {'id': 's2', 'network_id': 'flat', 'segment_id': None}
    http.get(f'{subnets}?limit=1000', json=listed(subnet, other))
    http.get(f'{NEUTRON}/v2.0/ports?limit=1000', json=listed(routed, gateway))
    live.nova.placed = [live.server()]

    def explained(*options):
        result = run(
            *('--config-file', path, 'explain', '-f', 'json'),
            *('--server', SERVER, *options),
        )
        assert (result.code, result.err) == (4, '')
        return json.loads(result.out)

    online = explained()
    saved = tmp_path / 'cloud.yaml'
    result = run(
        '--config-file', path, 'snapshot', 'save', '--output', str(saved)
    )
    assert (result.code, result.err) == (0, '')
    offline = explained('--snapshot', str(saved))
    assert offline['hosts'] == online['hosts']
    assert offline['summary']['not_known'] == online['summary']['not_known']
    assert 'p1' in str(online['hosts'])


def test_a_file_without_ports_is_saved_if_neutron_does_not_show_them(
    live, run, in_environment, http, tmp_path
):
    live.has_ports(SERVER)
    http.get(f'{NEUTRON}/v2.0/subnets?limit=1000', status_code=403)
    live.boots(image={'id': live.images['debian-12']})
    live.nova.placed = [live.server()]
    saved = tmp_path / 'cloud.yaml'
    result = run('snapshot', 'save', '--output', str(saved))
    assert result.code == 0
    assert result.err.startswith(
        'The ports of servers are left out, so explain --server does not '
        'know what they request: Neutron'
    )
    assert saved.exists()
