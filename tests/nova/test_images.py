# SPDX-License-Identifier: Apache-2.0
"""The image properties that Nova stores for a request and its server."""

import datetime

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.db.main import models
from oslo_db import exception as db_exception
from oslo_utils import uuidutils
import pytest
import sqlalchemy as sa

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
REBUILT = datetime.datetime(2030, 1, 1)


class Nova:
    """Counts how often the record of a server is read."""

    def __init__(
        self, properties=GLANCE, image_id=f'{UUID}1', rebuilt_at=None
    ):
        self.record = images.Record(
            image_id, properties, rebuilt_at=rebuilt_at
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
    ('spec_id', 'record_id', 'has_failed', 'is_refused'),
    [
        pytest.param(f'{UUID}1', f'{UUID}1', False, False, id='same'),
        pytest.param(f'{UUID}1', f'{UUID}1', True, False, id='failed'),
        pytest.param(f'{UUID}2', f'{UUID}1', True, True, id='refused'),
        # A rebuild from the same image leaves the refused one behind.
        pytest.param(f'{UUID}2', f'{UUID}1', False, True, id='then same'),
        pytest.param(f'{UUID}2', '', True, True, id='volume: refused'),
        pytest.param(f'{UUID}2', '', False, False, id='volume: ok'),
        pytest.param(None, '', True, True, id='no image: refused'),
    ],
)
def test_ids_and_the_last_rebuild_tell_whether_an_image_was_refused(
    spec_id, record_id, has_failed, is_refused
):
    image = move(image_id=spec_id).image
    record = images.Record(
        record_id, {}, rebuilt_at=REBUILT, has_failed=has_failed
    )
    assert record.is_refused(image) is is_refused
    never_rebuilt = images.Record(record_id, {}, has_failed=has_failed)
    assert not never_rebuilt.is_refused(image)


@pytest.mark.parametrize(
    ('nova', 'spec'),
    [
        (Nova(image_id=f'{UUID}2', rebuilt_at=REBUILT), move),
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


# How the record is read, from a real database of a cell.

FLAVOR = objects.Flavor(
    id=1,
    name='small',
    memory_mb=64,
    vcpus=1,
    root_gb=1,
    ephemeral_gb=0,
    flavorid='1',
    swap=0,
    extra_specs={},
)
METADATA = {
    'image_license:oracle': 'true',
    'image_min_ram': '64',
    'image_base_image_ref': f'{UUID}2',
    'owner_user_name': 'me',
}
PROPERTIES = {'license:oracle': 'true'}
BUILT = nova_exception.BuildRequestNotFound(uuid='u')


class Databases:
    """Nova's databases: a real one of a cell, and two tables that may fail.

    :ivar build: What the table of build requests raises.
    :ivar mapping: What the table of cells of servers raises.
    """

    def __init__(self, path):
        self.build = BUILT
        self.mapping = None
        self.cell = objects.CellMapping(
            # Nova remembers how to reach a cell.
            uuid=uuidutils.generate_uuid(),
            database_connection=f'sqlite:///{path}',
            transport_url='none:///',
        )
        models.BASE.metadata.create_all(
            sa.create_engine(self.cell.database_connection)
        )
        with self.context() as context:
            objects.Instance(
                context,
                uuid=f'{UUID}9',
                project_id='p',
                user_id='u',
                image_ref=f'{UUID}1',
                host='host1',
                flavor=FLAVOR,
                system_metadata=dict(METADATA),
            ).create()

    def context(self):
        admin = nova_context.get_admin_context()
        return nova_context.target_cell(admin, self.cell)

    def change(self, **fields):
        """Change the server."""
        with self.context() as context, self.writing(context) as session:
            session.query(models.Instance).update(fields)

    def act(self, *actions):
        """Add actions of the server: name, message, and pairs of events."""
        with self.context() as context, self.writing(context) as session:
            for action, message, *events in actions:
                row = models.InstanceAction(
                    action=action, instance_uuid=f'{UUID}9', message=message
                )
                session.add(row)
                session.flush()
                for event, host in events:
                    session.add(
                        models.InstanceActionEvent(
                            event=event, host=host, action_id=row.id
                        )
                    )

    def writing(self, context):
        return context.db_connection.writer.using(context)

    def read(self, **fields):
        return images.read(
            objects.RequestSpec(instance_uuid=f'{UUID}9', **fields)
        )


@pytest.fixture
def databases(monkeypatch, tmp_path):
    found = Databases(tmp_path / 'cell.sqlite')

    def get_building(context, uuid):
        if found.build:
            raise found.build
        with found.context() as in_cell:
            instance = objects.Instance.get_by_uuid(
                in_cell, uuid, expected_attrs=['system_metadata']
            )
        return objects.BuildRequest(instance=instance)

    def get_mapping(context, uuid):
        if found.mapping:
            raise found.mapping
        return objects.InstanceMapping(cell_mapping=found.cell)

    monkeypatch.setattr(
        objects.BuildRequest, 'get_by_instance_uuid', get_building
    )
    monkeypatch.setattr(
        objects.InstanceMapping, 'get_by_instance_uuid', get_mapping
    )
    return found


def test_a_new_server_has_the_record_of_its_boot(databases):
    databases.build = None
    assert databases.read() == images.Record(f'{UUID}1', PROPERTIES)


@pytest.mark.parametrize('has_cell', [True, False])
def test_a_server_has_a_host_and_a_flavor_too(databases, has_cell):
    cell = databases.cell if has_cell else None
    record = databases.read(
        requested_destination=objects.Destination(cell=cell)
    )
    assert (record.image_id, record.properties) == (f'{UUID}1', PROPERTIES)
    assert (record.host, record.flavor.name) == ('host1', 'small')
    assert record.rebuilt_at is None


@pytest.mark.parametrize(
    ('actions', 'was_rebuilt', 'has_failed'),
    [
        ([], False, False),
        ([('create', None), ('migrate', 'Error')], False, False),
        ([('rebuild', None), ('migrate', 'Error')], True, False),
        ([('rebuild', 'Error'), ('rebuild', None)], True, False),
        ([('rebuild', None), ('rebuild', 'Error')], True, True),
        ([('create', None), ('evacuate', 'Error')], False, False),
        # Three years of daily backups.
        ([('rebuild', 'Error'), *[('createBackup', None)] * 1100], True, True),
        ([('create', None), *[('createBackup', None)] * 1100], False, False),
    ],
)
def test_a_record_tells_the_last_rebuild_and_whether_it_failed(
    databases, actions, was_rebuilt, has_failed
):
    databases.act(*actions)
    record = databases.read()
    assert bool(record.rebuilt_at) is was_rebuilt
    assert record.has_failed is has_failed


def test_a_rebuild_began_when_its_record_was_made(databases):
    databases.act(('rebuild', None))
    with (
        databases.context() as context,
        databases.writing(context) as session,
    ):
        session.query(models.InstanceAction).update(
            {'created_at': datetime.datetime(2030, 1, 1)}
        )
    assert databases.read().rebuilt_at == datetime.datetime(2030, 1, 1)


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
    databases, events, host
):
    databases.change(host=None)
    databases.act(
        ('shelve', None, ('compute_shelve_instance', 'earlier')),
        ('rebuild', None),
        ('shelve', None, *events),
        ('unshelve', 'Error'),
    )
    assert databases.read().host == (host or 'earlier')


def test_a_server_that_was_never_shelved_has_no_former_host(databases):
    databases.change(host=None)
    databases.act(
        ('rebuild', None), ('migrate', None, ('cold_migrate', 'host2'))
    )
    assert databases.read().host is None


def test_a_request_without_a_server_has_no_record():
    assert images.read(objects.RequestSpec()) is None


@pytest.mark.parametrize('missing', ['mapping', 'server'])
def test_a_server_that_is_gone_has_no_record(databases, missing):
    if missing == 'mapping':
        databases.mapping = nova_exception.InstanceMappingNotFound(uuid='u')
    else:
        databases.change(deleted=1)
    assert databases.read() is None


def test_a_server_that_is_in_no_cell_yet_has_no_record(databases):
    databases.cell = None
    assert databases.read() is None


@pytest.mark.parametrize(
    'error',
    [db_exception.DBConnectionError(), nova_exception.CellTimeout()],
)
def test_a_database_that_fails_is_an_error(databases, error):
    databases.build = error
    with pytest.raises(
        exception.ServiceError,
        match=f'cannot be read: {type(error).__name__}$',
    ):
        databases.read()
