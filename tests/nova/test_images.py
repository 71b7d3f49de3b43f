# SPDX-License-Identifier: Apache-2.0
"""The image properties that Nova stores for a request and its server."""

import json

from cases import cases
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.db.main import models
from oslo_db import exception as db_exception
from oslo_utils import uuidutils
import pytest
import sqlalchemy as sa

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters import RequestFilter
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova import adapter, images
from isolate_aggregates.nova.adapter import Decider
from isolate_aggregates.request.placed import Placed, encode, hint

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
FLAVOR = objects.Flavor(
    id=1,
    name='small',
    memory_mb=64,
    vcpus=1,
    root_gb=1,
    ephemeral_gb=0,
    flavorid='1',
    swap=0,
    extra_specs={'k': 'v'},
)


class Nova:
    """Counts how often the record of a server is read."""

    def __init__(self, properties=GLANCE, traits=None):
        self.record = images.AcceptedImage(properties, f'{UUID}1', traits)
        self.read = 0

    def __call__(self, spec, cell, all_recorded):
        self.read += 1
        return self.record


class NoRecord(Nova):
    """A Nova without a record of the server."""

    def __init__(self):
        super().__init__()
        self.record = images.AcceptedImage(None)


def request(image_id=f'{UUID}1', properties=GLANCE, **destination):
    identity = {'id': image_id} if image_id else {}
    spec = objects.RequestSpec(
        flavor=FLAVOR,
        requested_resources=None,
        is_bfv=False,
        image=objects.ImageMeta(
            properties=objects.ImageMetaProps.from_dict(properties), **identity
        ),
    )
    if destination:
        spec.requested_destination = objects.Destination(**destination)
    return spec


@pytest.fixture
def accepted(monkeypatch):
    """Return the request that filters of given declarations see."""

    def accepted(declared, keys=(), nova=None, spec=None):
        class Declaring(RequestFilter):
            IMAGE_PROPERTIES = declared
            IMAGE_KEYS = keys

            def __call__(self, request, aggregates):
                seen.append(request)
                return ()

        seen = []
        spec = spec or request()
        monkeypatch.setattr(images, 'read', nova or Nova())
        pipeline = Pipeline({'one': Declaring()})
        Decider(bool).decide(spec, AggregateIndex(), pipeline)
        # Otherwise the request would end here.
        seen[0].spec_of_nova = spec
        return seen[0]

    return accepted


def move(**spec):
    return request(cell=objects.CellMapping(), **spec)


def test_a_boot_needs_no_record_if_no_filter_reads_a_property(accepted):
    nova = Nova()
    image = accepted((), nova=nova)
    assert image.image_properties == TRAIT
    assert 'CUSTOM_A' in image.required_traits
    assert nova.read == 0


@pytest.mark.parametrize(
    'name',
    ['os_distro', 'hw_vif_multiqueue_enabled', 'license:oracle'],
    ids=['may come from an older name', 'is converted', 'is dropped'],
)
def test_the_record_is_read_once_for_all_properties(accepted, name):
    nova = Nova()
    image = accepted((name, 'hw_machine_type'), ('other:*',), nova)
    assert image.image_properties == TRAIT | {
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
    accepted, destination, declared
):
    nova = Nova()
    accepted(declared, nova=nova, spec=request(**destination))
    assert nova.read == 1


@pytest.mark.parametrize('destination', [None, objects.Destination()])
def test_a_boot_is_not_treated_as_a_move(destination):
    spec = request()
    assert not adapter.is_for_existing(spec)
    spec.requested_destination = destination
    assert not adapter.is_for_existing(spec)


def test_a_trait_that_the_request_does_not_require_is_not_required(accepted):
    nova = Nova(GLANCE | {'trait:CUSTOM_B': 'required'})
    assert accepted(
        ('os_*', 'trait:*'), nova=nova
    ).image_properties == TRAIT | {'os_distro': 'debian'}


def test_an_image_of_which_nova_knows_nothing_has_no_properties(accepted):
    spec = request()
    spec.image = objects.ImageMeta()
    nova = Nova({})
    image = accepted(('hw_machine_type',), nova=nova, spec=spec)
    assert image.image_properties == {}


@pytest.mark.parametrize('spec_id', [None, f'{UUID}1'])
def test_a_server_that_boots_from_a_volume_has_a_record_too(accepted, spec_id):
    image = accepted(('license:*',), spec=move(image_id=spec_id))
    assert 'CUSTOM_A' in image.required_traits
    assert image.image_properties['license:oracle'] == 'true'


@cases(
    ('image', 'named', 'rebuilds', 'is_refused'),
    {
        'never rebuilt': ('a', 'a', [], False),
        # The server was made before Nova had recorded its image.
        'never rebuilt, other image': ('a', 'b', [], False),
        'same': ('a', 'a', [False], False),
        'another, after a refused one': ('a', 'a', [True, False], False),
        'refused': ('a', 'b', [True], True),
        # A rebuild from the same image leaves the refused one behind.
        'refused, then same': ('a', 'b', [True, False], True),
        'volume': ('', 'b', [False], False),
        'volume: refused once': ('', 'b', [False, True, False], True),
        'volume without image': ('', '', [], False),
    },
)
def test_ids_and_rebuilds_tell_whether_an_image_was_refused(
    image, named, rebuilds, is_refused
):
    assert images.is_refused(image, named, rebuilds) is is_refused


@pytest.mark.parametrize(
    ('nova', 'spec'),
    [
        (NoRecord(), move),
        (NoRecord(), request),
    ],
    ids=['the server is gone', 'it was deleted'],
)
class TestWithoutARecord:
    """The image properties stored with the server are not available."""

    @pytest.mark.parametrize('needed', ['license:oracle', 'license:*'])
    def test_a_needed_property_refuses(self, accepted, nova, spec, needed):
        with pytest.raises(exception.RequestRefused) as caught:
            accepted((needed, 'a'), ('key:*',), nova, spec())
        [reason] = caught.value.reasons
        assert f'the image properties a, {needed} are not available' in reason

    def test_an_image_opens_nothing(self, accepted, nova, spec):
        image = accepted((), ('license:*',), nova, spec())
        assert image.image_properties == {}
        assert image.required_traits == frozenset()


def test_a_value_that_nova_may_have_truncated_is_unavailable(accepted):
    nova = Nova({'license:a': None, 'license:b': 'x', 'other': ''})
    with pytest.raises(exception.RequestRefused, match='license:a are not'):
        accepted(('license:*',), nova=nova)
    found = accepted(('other',), ('license:*',), nova).image_properties
    assert found == TRAIT | {'license:b': 'x', 'other': ''}


# How the record is read, from a real database of a cell.

METADATA = {
    'image_license:oracle': 'true',
    'image_min_ram': '64',
    'image_base_image_ref': f'{UUID}2',
    'owner_user_name': 'me',
}
PROPERTIES = {'license:oracle': 'true'}
UNKNOWN = images.AcceptedImage(None)
STORED = images.AcceptedImage(PROPERTIES, f'{UUID}1')
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
        """Add actions of the server: name, message, and events."""
        with self.context() as context, self.writing(context) as session:
            for action, message, *events in actions:
                row = models.InstanceAction(
                    action=action, instance_uuid=f'{UUID}9', message=message
                )
                session.add(row)
                session.flush()
                for event in events:
                    session.add(
                        models.InstanceActionEvent(
                            event=event, action_id=row.id
                        )
                    )

    def writing(self, context):
        return context.db_connection.writer.using(context)

    def describe(self, metadata):
        """Replace the system metadata of the server."""
        with self.context() as context:
            server = objects.Instance.get_by_uuid(
                context, f'{UUID}9', expected_attrs=['system_metadata']
            )
            server.system_metadata = metadata
            server.save()

    def read(self, cell=None, record=None, all_recorded=False, **fields):
        """Read the image of the server.

        :param record: What nova-scheduler has recorded.
        """
        fields = {'image': objects.ImageMeta(id=f'{UUID}1'), **fields}
        if record:
            fields['scheduler_hints'] = {hint(f'{UUID}9'): encode(record)}
        spec = objects.RequestSpec(instance_uuid=f'{UUID}9', **fields)
        return images.read(spec, cell, all_recorded)


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
    assert databases.read() == STORED


def test_a_value_of_full_length_may_be_truncated(databases):
    values = {'image_a': 'é' * 126, 'image_b': 'x' * 251, 'image_c': ''}
    databases.describe(values)
    assert databases.read().properties == {'a': None, 'b': 'x' * 251, 'c': ''}


@pytest.mark.parametrize('has_cell', [True, False])
def test_a_server_that_was_never_rebuilt_has_its_first_record(
    databases, has_cell
):
    cell = databases.cell if has_cell else None
    assert databases.read(cell) == STORED


ON_HOST = 'compute_rebuild_instance'
REFUSED = ('rebuild', 'Error', 'rebuild_server')
FAILED = ('rebuild', 'Error', 'rebuild_server', ON_HOST)
ACCEPTED = ('rebuild', None, 'rebuild_server', ON_HOST)


@cases(
    ('actions', 'expected'),
    {
        'none': ([], []),
        'others': ([('create', None), ('migrate', 'Error')], []),
        'accepted': ([ACCEPTED], [False]),
        # It was accepted before it failed.
        'failed on the host': ([FAILED], [False]),
        'refused': ([REFUSED], [True]),
        'refused before': ([REFUSED, ACCEPTED], [False, True]),
        'evacuated': ([('evacuate', 'Error')], []),
        'years of backups': (
            [REFUSED, *[('createBackup', None)] * 1100], [True]),
    },
)  # fmt: skip
def test_the_actions_of_a_server_tell_which_rebuilds_were_refused(
    databases, actions, expected
):
    databases.act(*actions)
    uuid = f'{UUID}9'
    with databases.context() as context, databases.writing(context) as session:
        found = images.refusals(session, [uuid]).get(uuid, [])
    assert sorted(found) == expected


RECORD = Placed(f'{UUID}1', ('CUSTOM_A',), {'reservation:x': '1'})


@pytest.mark.parametrize('actions', [[], [ACCEPTED], [REFUSED], [FAILED]])
@pytest.mark.parametrize('image', [f'{UUID}1', '', None])
def test_the_record_of_a_server_takes_precedence(databases, actions, image):
    databases.change(image_ref=image)
    databases.act(*actions)
    refused = objects.ImageMeta(id=f'{UUID}2')
    found = databases.read(record=RECORD, image=refused)
    assert found == images.AcceptedImage(
        RECORD.properties, RECORD.image, RECORD.traits
    )


def test_a_record_of_another_image_does_not_count(databases):
    """A scheduler without this package has accepted the rebuild."""
    databases.act(ACCEPTED)
    assert databases.read(record=RECORD._replace(image='x')) == STORED


@pytest.mark.parametrize(
    ('actions', 'properties'), [([], PROPERTIES), ([ACCEPTED], None)]
)
def test_a_record_without_properties_leaves_them_to_nova_until_a_rebuild(
    databases, actions, properties
):
    databases.act(*actions)
    record = RECORD._replace(properties=None)
    assert databases.read(record=record) == images.AcceptedImage(
        properties, RECORD.image, RECORD.traits
    )


@pytest.mark.parametrize('version', [{'image': 'a'}, {'x': 1}, [], 'x', None])
def test_a_record_of_another_version_refuses(databases, version):
    hints = {hint(f'{UUID}9'): [json.dumps(version)]}
    with pytest.raises(exception.RequestRefused, match='cannot be read by'):
        databases.read(scheduler_hints=hints)


@pytest.mark.parametrize('image', [f'{UUID}1', ''])
def test_without_a_record_a_refused_rebuild_needs_an_operator(
    databases, image
):
    databases.change(image_ref=image)
    databases.act(REFUSED)
    refused = {'image': objects.ImageMeta(id=f'{UUID}2')}
    with pytest.raises(exception.RequestRefused, match='name the host'):
        databases.read(**refused)
    nothing = images.AcceptedImage({}, image, ())
    named = objects.Destination(host='host2')
    assert databases.read(requested_destination=named, **refused) == nothing
    # It would have a record if anything of its image counted.
    assert databases.read(all_recorded=True, **refused) == nothing


def test_without_a_record_an_accepted_rebuild_has_what_nova_has(databases):
    databases.act(REFUSED, ACCEPTED)
    assert databases.read() == STORED


def test_a_rebuild_is_decided_by_its_image(databases):
    databases.act(REFUSED)
    found = databases.read(
        record=RECORD,
        image=objects.ImageMeta(id=f'{UUID}2'),
    )
    assert found.image == f'{UUID}1'
    spec = objects.RequestSpec(
        instance_uuid=f'{UUID}9',
        image=objects.ImageMeta(id=f'{UUID}2'),
        scheduler_hints={
            '_nova_check_type': ['rebuild'],
            hint(f'{UUID}9'): encode(RECORD),
        },
    )
    assert images.read(spec, databases.cell) == images.AcceptedImage(
        PROPERTIES, f'{UUID}2'
    )


def test_a_request_without_a_server_has_no_record():
    assert images.read(objects.RequestSpec(), None) == UNKNOWN


@pytest.mark.parametrize('missing', ['mapping', 'server'])
def test_a_server_that_is_gone_has_no_record(databases, missing):
    if missing == 'mapping':
        databases.mapping = nova_exception.InstanceMappingNotFound(uuid='u')
    else:
        databases.change(deleted=1)
    assert databases.read() == UNKNOWN


def test_a_server_that_is_in_no_cell_yet_has_no_record(databases):
    databases.cell = None
    assert databases.read() == UNKNOWN


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
