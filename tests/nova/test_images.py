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

    def __init__(self, properties=GLANCE, image_id=f'{UUID}1'):
        self.record = images.Record(image_id, properties)
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
    found = accepted(declared, nova=nova)
    assert found.properties == TRAIT | {
        name: GLANCE[name] for name in declared
    }
    assert found.is_known
    assert nova.read == 0


@pytest.mark.parametrize(
    'name',
    ['os_distro', 'hw_vif_multiqueue_enabled', 'license:oracle'],
    ids=['may come from an older name', 'is converted', 'is dropped'],
)
def test_the_record_is_read_once_for_other_properties(name):
    nova = Nova()
    found = accepted((name, 'hw_machine_type'), ('other:*',), nova)
    assert found.properties == TRAIT | {
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
    found = accepted(('license:*',), nova=nova, spec=move(image_id=spec_id))
    assert found.is_known
    assert found.properties['license:oracle'] == 'true'


@pytest.mark.parametrize(
    ('image_ref', 'actions', 'doubtful'),
    [
        ('', [], False),
        ('', [('migrate', 'Error'), ('rebuild', None)], False),
        ('', [('rebuild', None), ('rebuild', 'Error')], False),
        ('', [('migrate', None), ('rebuild', 'Error')], True),
        (f'{UUID}1', [('rebuild', 'Error')], False),
    ],
)
def test_on_a_volume_the_last_rebuild_tells_whether_it_was_refused(
    monkeypatch, image_ref, actions, doubtful
):
    monkeypatch.setattr(
        objects.InstanceActionList,
        'get_by_instance_uuid',
        lambda context, uuid: [
            objects.InstanceAction(action=action, message=message)
            for action, message in actions
        ],
    )
    instance = objects.Instance(uuid=f'{UUID}9', image_ref=image_ref)
    assert images._is_doubtful(None, instance) is doubtful


def test_the_image_of_a_doubtful_record_opens_nothing():
    assert not images.Record('', {}, is_doubtful=True).is_of(move().image)


@pytest.mark.parametrize(
    ('nova', 'spec'),
    [
        (Nova(image_id=f'{UUID}2'), move),
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
        found = accepted((), ('license:*',), nova, spec())
        assert found.properties == {}
        assert not found.is_known


def test_a_value_that_nova_may_have_truncated_is_unavailable():
    nova = Nova({'license:a': 'é' * 126, 'license:b': 'x' * 251, 'other': ''})
    with pytest.raises(exception.RequestRefused, match='license:a are not'):
        accepted(('license:*',), nova=nova)
    assert accepted(('other',), ('license:*',), nova).properties == TRAIT | {
        'license:b': 'x' * 251, 'other': ''
    }  # fmt: skip


# How the record is read.

INSTANCE = objects.Instance(
    image_ref=f'{UUID}1',
    system_metadata={
        'image_license:oracle': 'true',
        'image_min_ram': '64',
        'image_base_image_ref': f'{UUID}2',
        'owner_user_name': 'me',
    },
)


@pytest.fixture
def databases(monkeypatch):
    """Nova's databases, of which each may lack the server or fail."""
    asked = {'build': None, 'mapping': None, 'cell': None}

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


@pytest.mark.parametrize('built', [None, BUILT])
@pytest.mark.parametrize('cell', [None, objects.CellMapping()])
def test_a_record_has_the_properties_of_the_image(databases, built, cell):
    databases['build'] = built
    asked = objects.Destination(cell=cell)
    assert read(
        instance_uuid=f'{UUID}9', requested_destination=asked
    ) == images.Record(f'{UUID}1', {'license:oracle': 'true'})


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
