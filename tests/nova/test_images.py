# SPDX-License-Identifier: Apache-2.0
"""The image properties that Nova stores for a request and its server."""

from nova import exception as nova_exception
from nova import objects
from oslo_db import exception as db_exception
import pytest

from isolate_aggregates import exception
from isolate_aggregates.nova import images
from isolate_aggregates.request.properties import DeclaredProperties

objects.register_all()

UUID = '00000000-0000-0000-0000-00000000000'
GLANCE = {
    'os_distro': 'debian',
    'hw_machine_type': 'q35',
    'hw_vif_multiqueue_enabled': 'yes',
    'license:oracle': 'true',
    'trait:CUSTOM_A': 'required',
}
TRAIT = {'trait:CUSTOM_A': 'required'}


class Nova:
    """Counts how often the record of a server is read."""

    def __init__(
        self, properties=GLANCE, image_id=f'{UUID}1', has_failed=False
    ):
        self.record = images.Record(
            image_id, properties, has_failed=has_failed
        )
        self.read = 0

    def __call__(self, spec):
        self.read += 1
        return self.record


class NoRecord(Nova):
    """A Nova without a record of the server."""

    def __init__(self):
        super().__init__()
        self.record = None


def request(image_id=f'{UUID}1', properties=GLANCE, **destination):
    identity = {'id': image_id} if image_id else {}
    spec = objects.RequestSpec(
        image=objects.ImageMeta(
            properties=objects.ImageMetaProps.from_dict(properties), **identity
        )
    )
    if destination:
        spec.requested_destination = objects.Destination(**destination)
    return spec


def accepted(declared, keys=(), nova=None, spec=None):
    return images.AcceptedImage(
        spec or request(),
        DeclaredProperties(
            frozenset(declared) | frozenset(keys), frozenset(keys)
        ),
        nova or Nova(),
    )


def move(**spec):
    return request(cell=objects.CellMapping(), **spec)


@pytest.mark.parametrize('declared', [(), ('hw_machine_type',)])
def test_a_boot_needs_no_record_for_properties_kept_unchanged(declared):
    nova = Nova()
    image = accepted(declared, nova=nova)
    assert image.properties == TRAIT | {
        name: GLANCE[name] for name in declared
    }
    assert image.is_known
    assert nova.read == 0


@pytest.mark.parametrize(
    'name',
    ['os_distro', 'hw_vif_multiqueue_enabled', 'license:oracle'],
    ids=['may come from an older name', 'is converted', 'is dropped'],
)
def test_the_record_is_read_once_for_other_properties(name):
    nova = Nova()
    image = accepted((name, 'hw_machine_type'), ('other:*',), nova)
    assert image.properties == TRAIT | {
        name: GLANCE[name], 'hw_machine_type': 'q35'
    }  # fmt: skip
    assert nova.read == 1


@pytest.mark.parametrize(
    'destination',
    [{'cell': objects.CellMapping()}, {'allow_cross_cell_move': True}],
    ids=['in its cell', 'to a host in any cell'],
)
@pytest.mark.parametrize('declared', [(), ('hw_machine_type',)])
def test_a_move_needs_the_record_for_all_that_could_open(
    destination, declared
):
    nova = Nova()
    accepted(declared, nova=nova, spec=request(**destination))
    assert nova.read == 1


def test_a_move_of_an_image_without_keys_needs_no_record():
    nova = Nova()
    spec = move(properties={})
    assert accepted((), nova=nova, spec=spec).properties == {}
    assert nova.read == 0


@pytest.mark.parametrize('destination', [None, objects.Destination()])
def test_a_boot_is_not_treated_as_a_move(destination):
    spec = request()
    assert not images.is_for_existing(spec)
    spec.requested_destination = destination
    assert not images.is_for_existing(spec)


def test_a_trait_that_the_request_does_not_require_is_not_required():
    nova = Nova(GLANCE | {'trait:CUSTOM_B': 'required'})
    assert accepted(('os_*', 'trait:*'), nova=nova).properties == TRAIT | {
        'os_distro': 'debian'
    }


def test_an_image_of_which_nova_knows_nothing_has_no_properties():
    spec = objects.RequestSpec(image=objects.ImageMeta())
    assert accepted(('hw_machine_type',), spec=spec).properties == {}


@pytest.mark.parametrize(
    ('spec_id', 'record_id'),
    [(None, f'{UUID}1'), (f'{UUID}1', ''), (None, '')],
)
def test_a_server_that_boots_from_a_volume_has_a_record_too(
    spec_id, record_id
):
    nova = Nova(image_id=record_id)
    image = accepted(('license:*',), nova=nova, spec=move(image_id=spec_id))
    assert image.is_known
    assert image.properties['license:oracle'] == 'true'


@pytest.mark.parametrize(
    ('spec_id', 'record_id', 'has_failed', 'is_other', 'is_refused'),
    [
        pytest.param(f'{UUID}1', f'{UUID}1', False, False, False, id='same'),
        pytest.param(f'{UUID}1', f'{UUID}1', True, False, False, id='failed'),
        pytest.param(f'{UUID}2', f'{UUID}1', True, True, True, id='refused'),
        pytest.param(f'{UUID}2', f'{UUID}1', False, True, False, id='then ok'),
        pytest.param(f'{UUID}2', '', True, True, True, id='volume: refused'),
        pytest.param(f'{UUID}2', '', False, False, False, id='volume: ok'),
        pytest.param(None, '', True, True, True, id='no image: refused'),
    ],
)
def test_the_last_rebuild_tells_whether_an_image_was_refused(
    spec_id, record_id, has_failed, is_other, is_refused
):
    record = images.Record(
        record_id, {}, was_rebuilt=True, has_failed=has_failed
    )
    image = move(image_id=spec_id).image
    assert record.is_other(image) is is_other
    assert record.is_refused(image) is is_refused


@pytest.mark.parametrize(
    ('nova', 'spec'),
    [
        (Nova(image_id=f'{UUID}2', has_failed=True), move),
        (NoRecord(), move),
        (NoRecord(), request),
    ],
    ids=['a rebuild was refused', 'the server is gone', 'it was deleted'],
)
class TestWithoutARecord:
    """The image properties stored with the server are not available."""

    @pytest.mark.parametrize('needed', ['license:oracle', 'license:*'])
    def test_a_needed_property_refuses(self, nova, spec, needed):
        with pytest.raises(exception.RequestRefused) as caught:
            accepted((needed, 'a'), ('key:*',), nova, spec())
        [reason] = caught.value.reasons
        assert f'the image properties a, {needed} are not available' in reason

    def test_an_image_opens_nothing(self, nova, spec):
        image = accepted((), ('license:*',), nova, spec())
        assert image.properties == {}
        assert not image.is_known


def test_a_value_that_nova_may_have_truncated_is_unavailable():
    nova = Nova({'license:a': 'é' * 126, 'license:b': 'x' * 251, 'other': ''})
    with pytest.raises(exception.RequestRefused, match='license:a are not'):
        accepted(('license:*',), nova=nova)
    assert accepted(('other',), ('license:*',), nova).properties == TRAIT | {
        'license:b': 'x' * 251, 'other': ''
    }  # fmt: skip


# How the record is read.

FLAVOR = objects.Flavor(name='small')
INSTANCE = objects.Instance(
    image_ref=f'{UUID}1',
    host='host1',
    flavor=FLAVOR,
    system_metadata={
        'image_license:oracle': 'true',
        'image_min_ram': '64',
        'image_base_image_ref': f'{UUID}2',
        'owner_user_name': 'me',
    },
)
PROPERTIES = {'license:oracle': 'true'}


@pytest.fixture
def databases(monkeypatch):
    """Nova's databases, of which each may lack the server or fail."""
    asked = {'build': None, 'mapping': None, 'cell': None, 'actions': []}

    def answering(name, answer):
        def get(context, uuid, **kwargs):
            assert uuid == f'{UUID}9'
            if asked[name]:
                raise asked[name]
            return answer

        return get

    for found, name, answer in (
        (objects.BuildRequest, 'build', objects.BuildRequest()),
        (objects.InstanceMapping, 'mapping', objects.InstanceMapping()),
    ):
        monkeypatch.setattr(
            found, 'get_by_instance_uuid', answering(name, answer)
        )
    monkeypatch.setattr(
        objects.Instance, 'get_by_uuid', answering('cell', INSTANCE)
    )
    monkeypatch.setattr(
        objects.BuildRequest, 'instance', INSTANCE, raising=False
    )
    monkeypatch.setattr(
        objects.InstanceActionList,
        'get_by_instance_uuid',
        lambda context, uuid, limit: [
            objects.InstanceAction(id=number, action=action, message=message)
            for number, (action, message) in enumerate(
                asked['actions'][:limit]
            )
        ],
    )
    monkeypatch.setattr(
        objects.InstanceMapping, 'cell_mapping', 'a cell', raising=False
    )
    monkeypatch.setattr(
        images.nova_context, 'target_cell', lambda *args: _Nothing()
    )
    return asked


class _Nothing:
    def __enter__(self):
        return None

    def __exit__(self, *args):
        return None


def read(**fields):
    return images.read(objects.RequestSpec(**fields))


BUILT = nova_exception.BuildRequestNotFound(uuid='u')


def test_a_new_server_has_the_record_of_its_boot(databases):
    assert read(instance_uuid=f'{UUID}9') == images.Record(
        f'{UUID}1', PROPERTIES
    )


@pytest.mark.parametrize('built', [None, BUILT])
@pytest.mark.parametrize('cell', [None, objects.CellMapping()])
def test_a_server_has_a_host_and_a_flavor_too(databases, built, cell):
    if cell is None:
        built = BUILT
    databases['build'] = built
    asked = objects.Destination(cell=cell)
    assert read(
        instance_uuid=f'{UUID}9', requested_destination=asked
    ) == images.Record(f'{UUID}1', PROPERTIES, host='host1', flavor=FLAVOR)


@pytest.mark.parametrize(
    ('actions', 'was_rebuilt', 'has_failed'),
    [
        ([], False, False),
        ([('migrate', 'Error'), ('create', None)], False, False),
        ([('migrate', 'Error'), ('rebuild', None)], True, False),
        ([('rebuild', None), ('rebuild', 'Error')], True, False),
        ([('migrate', None), ('rebuild', 'Error')], True, True),
        ([('evacuate', 'Error'), ('create', None)], False, False),
    ],
)
def test_a_record_tells_whether_the_last_rebuild_failed(
    databases, actions, was_rebuilt, has_failed
):
    databases.update(build=BUILT, actions=actions)
    record = read(instance_uuid=f'{UUID}9')
    assert (record.was_rebuilt, record.has_failed) == (was_rebuilt, has_failed)


@pytest.mark.parametrize(
    ('image_ref', 'has_failed'), [(f'{UUID}1', True), ('', False)]
)
def test_a_rebuild_cannot_be_hidden_by_many_actions(
    databases, monkeypatch, image_ref, has_failed
):
    server = objects.Instance(
        image_ref=image_ref, host='h', flavor=FLAVOR, system_metadata={}
    )
    monkeypatch.setattr(
        objects.Instance, 'get_by_uuid', lambda *args, **kwargs: server
    )
    databases.update(
        build=BUILT, actions=[('lock', None)] * 1000 + [('rebuild', 'Error')]
    )
    record = read(instance_uuid=f'{UUID}9')
    assert (record.was_rebuilt, record.has_failed) == (True, has_failed)


@pytest.mark.parametrize(
    ('events', 'host'),
    [
        ([('compute_shelve_instance', 'host2')], 'host2'),
        ([('compute_shelve_offload_instance', 'host2')], 'host2'),
        ([('conductor_unshelve_instance', 'host3')], None),
        ([('compute_shelve_instance', None)], None),
        ([], None),
    ],
)
def test_a_shelved_server_has_the_host_where_it_was_shelved(
    databases, monkeypatch, events, host
):
    shelved = objects.Instance(
        image_ref=f'{UUID}1', host=None, flavor=FLAVOR, system_metadata={}
    )
    monkeypatch.setattr(
        objects.Instance, 'get_by_uuid', lambda *args, **kwargs: shelved
    )
    monkeypatch.setattr(
        objects.InstanceActionEventList,
        'get_by_action',
        lambda context, action: [
            objects.InstanceActionEvent(event=event, host=host)
            for event, host in events
            if action == 1
        ],
    )
    databases.update(
        build=BUILT,
        actions=[('unshelve', 'Error'), ('shelve', None), ('rebuild', None)],
    )
    assert read(instance_uuid=f'{UUID}9').host == host


def test_a_request_without_a_server_has_no_record():
    assert read() is None


@pytest.mark.parametrize(
    'missing',
    [
        {'mapping': nova_exception.InstanceMappingNotFound(uuid='u')},
        {'cell': nova_exception.InstanceNotFound(instance_id='u')},
    ],
)
def test_a_server_that_is_gone_has_no_record(databases, missing):
    databases.update(missing, build=BUILT)
    assert read(instance_uuid=f'{UUID}9') is None


def test_a_server_that_is_in_no_cell_yet_has_no_record(databases, monkeypatch):
    databases['build'] = BUILT
    monkeypatch.setattr(objects.InstanceMapping, 'cell_mapping', None)
    assert read(instance_uuid=f'{UUID}9') is None


@pytest.mark.parametrize(
    'error',
    [db_exception.DBConnectionError(), nova_exception.CellTimeout()],
)
def test_a_database_that_fails_is_an_error(databases, error):
    databases['build'] = error
    with pytest.raises(
        exception.ServiceError,
        match=f'cannot be read: {type(error).__name__}$',
    ):
        read(instance_uuid=f'{UUID}9')
