# SPDX-License-Identifier: Apache-2.0
"""What is read from Nova, through the real novaclient."""

from cases import cases
from http_fakes import NOVA, PLACEMENT, connection
import pytest

from isolate_aggregates import exception
from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import ComputeHost, Flavor
from isolate_aggregates_reservations import names
from isolate_aggregates_tools import errors
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud
from isolate_aggregates_tools.compute.client import ComputeNode, NovaClient

WINDOWS = Aggregate(
    uuid='6b0d5a4e-0000-4000-8000-000000000001',
    name='win-hosts',
    metadata={'trait:CUSTOM_WINDOWS': 'required', 'availability_zone': 'az'},
    hosts=frozenset({'win-1', 'win-2'}),
    id=1,
    availability_zone='az',
)
UNICODE = Aggregate(
    uuid='6b0d5a4e-0000-4000-8000-000000000002',
    name='Lizenz für Höhlen 🦇',
    metadata={'Grund': 'für später', 'reservation:ä': '1'},
    id=2,
)
SMALL = Flavor('m1.small', '1', vcpus=1, ram=2048, disk=20)
LARGE = Flavor(
    'm1.large',
    '2',
    vcpus=4,
    ram=8192,
    disk=80,
    ephemeral=10,
    swap=512,
    extra_specs={'trait:CUSTOM_WINDOWS': 'required'},
)
NODES = [
    ComputeNode('uuid-node-1', 'node-1.example', 'host-1'),
    ComputeNode('uuid-node-2', 'node-2.example', 'ironic'),
    ComputeNode('uuid-node-3', 'node-3.example', 'ironic'),
]


def reader():
    return NovaClient(connection())


def paths(http):
    """Return what was asked of Nova."""
    return [
        request.path
        for request in http.request_history
        if 'nova' in request.url
    ]


def failing(read, *arguments):
    with pytest.raises(exception.ServiceError) as caught:
        read(*arguments)
    return caught.value


# Aggregates


def test_aggregates_come_with_uuid_metadata_and_hosts(http, nova):
    nova.aggregates = [WINDOWS, UNICODE]
    nova.answer(http)
    assert reader().aggregates() == [WINDOWS, UNICODE]


def test_a_cloud_without_aggregates_has_none(http, nova):
    nova.answer(http)
    assert reader().aggregates() == []


@cases(
    ('newest', 'spoken'),
    {
        'the oldest that tells uuids': ('2.41', '2.41'),
        'what the server knows': ('2.60', '2.60'),
        'the newest known here': ('2.61', '2.61'),
        'not newer than known here': ('2.100', '2.61'),
    },
)
def test_the_newest_common_microversion_is_used(http, nova, newest, spoken):
    nova.newest = newest
    nova.answer(http)
    reader().aggregates()
    sent = http.last_request
    assert sent.headers['OpenStack-API-Version'] == f'compute {spoken}'


@cases(
    ('newest', 'releases'),
    {
        'older than all that are known': ('2.96', (31,)),
        'the same in two releases': ('2.100', (31, 32)),
        '33': ('2.103', (33,)),
        '34': ('2.104', (34,)),
        'newer than all that are known': ('2.110', (34,)),
    },
)
def test_the_release_is_recognized_by_the_newest_microversion(
    http, nova, newest, releases
):
    nova.newest = newest
    nova.answer(http)
    assert reader().releases == releases


@cases(
    ('newest', 'offers'),
    {
        'before Ocata': ('2.38', 'offers microversions up to 2.38'),
        'no microversions': ('', 'is too old'),
    },
)
def test_a_nova_without_uuids_is_too_old(http, nova, newest, offers):
    nova.newest = newest
    nova.answer(http)
    error = failing(reader().aggregates)
    assert isinstance(error, exception.ServiceTooOld)
    assert str(error) == (
        f'Nova at http://nova.test/v2.1 {offers}; reading the uuids of '
        'aggregates needs 2.41 (Ocata).'
    )


def test_versions_are_also_found_below_an_endpoint_with_a_project(http, nova):
    nova.aggregates = [WINDOWS]
    nova.answer(http, f'{NOVA}/project')
    http.get(f'{NOVA}/project', status_code=404)
    http.get(f'{NOVA}/', json={'version': {'version': '2.96'}})
    link = connection()
    link.endpoints['compute'] = f'{NOVA}/project'
    assert NovaClient(link).aggregates() == [WINDOWS]


# Flavors


def test_records_of_reservations_are_no_flavors(http, nova):
    reservation = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
    revision = names.Revision(reservation, '0badcafe', 3).flavor_id
    own = Flavor(names.flavor(reservation), reservation)
    nova.flavors = [SMALL, own, Flavor(names.flavor(revision), revision)]
    nova.answer(http)
    assert reader().flavors() == [SMALL, own]


@pytest.mark.parametrize('newest', ['2.60', '2.61'])
def test_flavors_come_with_extra_specs_inline_or_in_another_call(
    http, nova, newest
):
    nova.newest, nova.flavors = newest, [SMALL, LARGE]
    nova.answer(http)
    assert reader().flavors() == [SMALL, LARGE]
    inline = '/v2.1/flavors/2/os-extra_specs' not in paths(http)
    assert inline == (newest == '2.61')


def test_only_extra_specs_of_the_requested_flavor_are_read(http, nova):
    nova.newest, nova.flavors = '2.60', [SMALL, LARGE]
    nova.answer(http)
    assert reader().flavor('m1.large') == LARGE
    assert '/v2.1/flavors/1/os-extra_specs' not in paths(http)


AWKWARD = ['a/b', 'what?', 'a b', 'größer', '..', 'detail', '%2F', '']


@pytest.mark.parametrize(
    ('name', 'id_'),
    [
        pytest.param('2', '2', id='by id'),
        pytest.param('m1.large', '2', id='by name'),
        pytest.param('secret', '3', id='a private one'),
        pytest.param('1', '1', id='an id takes precedence over a name'),
        *[
            pytest.param(name, f'id-{number}', id=f'a name such as {name!r}')
            for number, name in enumerate(AWKWARD)
        ],
    ],
)
def test_a_flavor_is_found_by_id_or_any_name(http, nova, name, id_):
    nova.flavors = [
        Flavor('1', 'named-1'),
        SMALL,
        LARGE,
        Flavor('secret', '3'),
        *[Flavor(name, f'id-{n}') for n, name in enumerate(AWKWARD)],
    ]
    nova.private = frozenset({'secret'})
    nova.access['3'] = {'p1'}
    nova.answer(http)
    found = reader().flavor(name)
    assert found.id == id_
    is_secret = name == 'secret'
    assert found.is_public is not is_secret
    assert found.projects == ({'p1'} if is_secret else frozenset())


def test_a_flavor_is_found_on_a_later_page_than_the_first(http, nova):
    nova.flavors = [Flavor(f'f{n}', f'id-{n}') for n in range(5)]
    # The server's page size applies.
    nova.page = 2
    nova.answer(http)
    assert reader().flavor('f4').id == 'id-4'
    assert len(reader().flavors()) == 5


@pytest.mark.parametrize('page', [1, 2])
def test_a_flavor_can_be_replaced_while_the_list_is_read(http, nova, page):
    new = Flavor('m1.large', '3')
    nova.flavors, nova.page = [SMALL, LARGE], page

    def replace():
        nova.flavors = [SMALL, new]

    nova.after_page = replace
    nova.answer(http)
    assert reader().flavors() == [SMALL, new]


def test_a_list_that_changes_all_the_time_is_an_error(http, nova):
    nova.flavors = [Flavor('m1.large', '0')]

    def replace():
        nova.flavors = [Flavor('m1.large', nova.flavors[0].id + '0')]

    nova.after_page = replace
    nova.answer(http)
    assert ' with 400: marker [0' in str(failing(reader().flavors))


def test_an_unknown_flavor_is_not_found(http, nova):
    nova.flavors = [SMALL]
    nova.answer(http)
    with pytest.raises(errors.NotFound) as caught:
        reader().flavor('M1.SMALL')
    assert str(caught.value) == (
        "There is no flavor with the name or id 'M1.SMALL' in Nova at "
        'http://nova.test/v2.1.'
    )


def test_a_repeated_page_is_an_error(http, nova):
    nova.answer(http)
    same = {'id': '1', 'name': 'm1.small'}
    http.get(f'{NOVA}/flavors/detail', json={'flavors': [same]})
    error = failing(reader().flavor, 'm1.large')
    assert 'the page after 1 ends with 1' in str(error)


# Compute nodes


def test_compute_nodes_are_read_page_by_page(http, nova):
    nova.nodes, nova.page = NODES, 2
    nova.answer(http)
    assert reader().compute_nodes() == NODES


@cases(
    ('name', 'providers'),
    {
        'a compute service': ('host-1', ('uuid-node-1',)),
        'one with two nodes': ('ironic', ('uuid-node-2', 'uuid-node-3')),
        'a node': ('node-2.example', ('uuid-node-2',)),
        'unknown': ('host-9', ()),
    },
)
def test_a_host_is_found_by_its_service_or_by_its_node(
    http, nova, conf, name, providers
):
    nova.nodes = NODES
    nova.answer(http)
    cloud = LiveCloud(conf, connection)
    host = cloud.requested_host(name)
    assert (host.name, host.providers) == (name, providers)


def test_for_an_unknown_host_a_similar_name_is_suggested(http, nova, conf):
    nova.nodes = NODES
    nova.answer(http)
    cloud = LiveCloud(conf, connection)
    assert cloud.requested_host('ironik') == ComputeHost(
        'ironik', suggestion=' (did you mean ironic?)'
    )


def test_node_uuids_missing_in_nova_come_from_placement(http, nova, conf):
    nova.newest, nova.nodes = '2.52', NODES
    nova.answer(http)
    provider = {
        'uuid': 'uuid-node-1',
        'name': 'node-1.example',
        'generation': 1,
        'parent_provider_uuid': None,
        'root_provider_uuid': 'uuid-node-1',
    }
    http.get(
        f'{PLACEMENT}/resource_providers?name=node-1.example',
        json={'resource_providers': [provider]},
    )
    assert LiveCloud(conf, connection).requested_host(
        'node-1.example'
    ) == ComputeHost('node-1.example', ('uuid-node-1',))


@cases(
    ('newest', 'nodes'),
    {
        'Nova tells': ('2.53', {node.uuid: node.host for node in NODES}),
        'Nova does not tell': ('2.52', {}),
    },
)
def test_the_compute_nodes_are_those_of_nova(http, nova, conf, newest, nodes):
    nova.newest, nova.nodes = newest, NODES
    nova.answer(http)
    assert LiveCloud(conf, connection).compute_nodes == nodes


# Errors


@cases(
    ('answer', 'kind', 'said'),
    {
        'no administrator': (
            {
                'status_code': 403,
                'json': {
                    'forbidden': {
                        'code': 403,
                        'message': "Policy doesn't allow os_compute_api:"
                        'os-aggregates:index to be performed.',
                    }
                },
            },
            exception.ServiceDenied,
            "denied GET /os-aggregates (403): Policy doesn't allow "
            'os_compute_api:os-aggregates:index to be performed; use '
            'credentials with the admin or service role.',
        ),
        'a token it does not know': (
            {'status_code': 401, 'json': {'error': {'message': 'Who?'}}},
            exception.ServiceDenied,
            'does not accept the token of GET /os-aggregates (401): Who?; '
            'check the credentials, and [keystone_authtoken] of the service.',
        ),
        'a fault': (
            {'status_code': 500, 'text': '<html>'},
            exception.ServiceFailed,
            'answered GET /os-aggregates with 500: Unknown Error.',
        ),
        'HTML': (
            {'text': '<html>Welcome to nginx</html>'},
            exception.ServiceError,
            'returned something other than the host aggregates: TypeError("'
            "'NoneType' object is not subscriptable\"); is this the right "
            'endpoint?',
        ),
        'no uuid in spite of the microversion': (
            {'json': {'aggregates': [{'id': 1, 'name': 'old'}]}},
            exception.ServiceError,
            'returned something other than the host aggregates: '
            "AttributeError('"
            "uuid'); is this the right endpoint?",
        ),
        'busy for good': (
            {'status_code': 503, 'text': ''},
            exception.ServiceError,
            'answered GET /os-aggregates with 503: Unknown Error.',
        ),
    },
)
def test_an_error_names_the_request_and_what_to_check(
    http, nova, answer, kind, said
):
    nova.answer(http)
    http.get(f'{NOVA}/os-aggregates', **answer)
    error = failing(reader().aggregates)
    assert type(error) is kind
    assert str(error) == f'Nova at http://nova.test/v2.1 {said}'


@cases(
    ('answer', 'said'),
    {
        'not even its versions': (
            {'status_code': 401},
            'does not accept the token of GET its versions (401): '
            'Unauthorized; check the credentials, and [keystone_authtoken] of '
            'the service.',
        ),
        'an invalid version': (
            {'json': {'version': {'version': 'newest'}}},
            'returned something other than its versions: UnsupportedVersion("',
        ),
        'no version': (
            {'json': {'version': {}}},
            'returned something other than its versions: '
            "AttributeError('version",
        ),
    },
)
def test_a_nova_without_a_version_document_is_not_called_too_old(
    http, nova, answer, said
):
    http.get(NOVA, **answer)
    error = failing(reader().aggregates)
    assert not isinstance(error, exception.ServiceTooOld)
    assert str(error).startswith(f'Nova at http://nova.test/v2.1 {said}')


def test_requests_to_a_busy_nova_are_retried(http, nova):
    nova.answer(http)
    http.get(
        f'{NOVA}/os-aggregates',
        [{'status_code': 503}, {'json': {'aggregates': []}}],
    )
    assert reader().aggregates() == []
