# SPDX-License-Identifier: Apache-2.0
"""Every error of Nova and of its databases becomes one of ours.

The calls are found in the source. Each one is broken in turn.
"""

import ast
import contextlib
import functools
import importlib
import inspect
import pathlib
import types

from keystoneauth1 import exceptions as ks_exceptions
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.db.api import models
from nova.db.main import api as main_db
from nova.db.main import models as main_models
from oslo_config import cfg
from oslo_db import exception as db_exception
import pytest
import sqlalchemy as sa

from isolate_aggregates import exception
from isolate_aggregates import nova as package
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.decision import Decision
from isolate_aggregates.filters.constraints import Destination
from isolate_aggregates.nova import adapter, images, placement, recheck, source
from isolate_aggregates.query_limit import Replacement

objects.register_all()

UUID = '00000000-0000-4000-8000-000000000001'
CELL = objects.CellMapping(uuid=UUID)
CONTEXT = nova_context.get_admin_context()
ERRORS = [
    db_exception.DBConnectionError(),
    db_exception.CantStartEngineError(),
    sa.exc.OperationalError('SELECT', {}, Exception()),
    nova_exception.NovaException('broken'),
    ImportError('no driver'),
]

# These do not run for requests: two modules, and a call of the upgrade check.
OTHER_MODULES = {'extra_spec_validators', 'manage'}
OTHER_CALLS = {'nova.db.api.api.configure'}
# Calls that read only their arguments and cannot fail.
PURE = {
    'nova.context.get_admin_context',
    'nova.context.is_cell_failure_sentinel',
    'nova.objects.ImageMeta.from_dict',
    'nova.scheduler.utils.request_is_rebuild',
}


def calls():
    """Yield the functions of Nova that the modules call, with full names."""
    for path in pathlib.Path(package.__file__).parent.glob('*.py'):
        if path.stem in OTHER_MODULES:
            continue
        tree = ast.parse(path.read_text('utf-8'))
        names = {
            alias.asname or alias.name: f'{node.module}.{alias.name}'
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and (node.module or '').split('.')[0] == 'nova'
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                first, *rest = parts = ast.unparse(node.func).split('.')
                # The call of a method of a result has brackets.
                if first in names and all(map(str.isidentifier, parts)):
                    yield '.'.join([names[first], *rest])


def resolved(name):
    """Return the object of a full name, and the one that it belongs to."""
    parts = name.split('.')
    for number in range(len(parts), 0, -1):
        with contextlib.suppress(ImportError):
            found = importlib.import_module('.'.join(parts[:number]))
            break
    parent = found
    for part in parts[number:]:
        parent, found = found, getattr(found, part)
    return found, parent


FOUND = sorted(
    name
    for name in {*calls()} - PURE - OTHER_CALLS
    if not inspect.isclass(resolved(name)[0])
)


def scatter(context, cells, timeout, read):
    results = {}
    for cell in cells:
        try:
            results[cell.uuid] = read(context)
        except Exception as exc:
            results[cell.uuid] = exc
    return results


def instance(*args, **kwargs):
    return types.SimpleNamespace(
        uuid=UUID, image_ref='', system_metadata={}, host=None, flavor=None
    )


@functools.cache
def engine(base=models.BASE):
    engine = sa.create_engine('sqlite://', poolclass=sa.pool.StaticPool)
    base.metadata.create_all(engine)
    return engine


@contextlib.contextmanager
def in_cell(context, cell):
    database = main_db.create_context_manager('sqlite://')
    # By default it tries to connect ten times, every ten seconds.
    database.configure(max_retries=0)
    database.patch_engine(engine(main_models.BASE))
    context.db_connection = database
    yield context


NODE = types.SimpleNamespace(host='h1', hypervisor_hostname='n1', uuid='n1')
# What the functions return if they are not broken.
RESULTS = {
    'nova.context.scatter_gather_cells': scatter,
    'nova.context.target_cell': in_cell,
    'nova.db.api.api.context_manager.writer.get_engine': lambda *_: engine(),
    'nova.db.main.api.get_context_manager': main_db.get_context_manager,
    'nova.objects.BuildRequest.get_by_instance_uuid': lambda *_: (
        types.SimpleNamespace(instance=instance())
    ),
    'nova.objects.CellMappingList.get_all': lambda context: [CELL],
    'nova.objects.ComputeNode.get_by_nodename': lambda *_: NODE,
    'nova.objects.ComputeNodeList.get_all_by_host': lambda *_: [NODE],
    'nova.objects.InstanceMapping.get_by_instance_uuid': lambda *_: (
        types.SimpleNamespace(cell_mapping=CELL)
    ),
    'nova.scheduler.utils.ResourceRequest.from_request_spec': lambda *_: (
        types.SimpleNamespace(
            all_required_traits=set(),
            cpu_pinning_requested=False,
            group_policy=None,
            get_request_group=lambda _: types.SimpleNamespace(),
            get_num_of_suffixed_groups=lambda: 0,
            to_querystring=str,
        )
    ),
    'nova.utils.get_ksa_adapter': lambda service: None,
}


def replace(monkeypatch, name, function):
    _, parent = resolved(name)
    if not isinstance(parent, type | types.ModuleType):
        parent = type(parent)
    monkeypatch.setattr(parent, name.rpartition('.')[2], function)


class Placement:
    """A Placement in which no provider is in an aggregate."""

    def resource_providers(self, in_tree):
        return []


class Membership:
    """A Nova in which no host is in an aggregate."""

    def aggregates_of(self, hosts):
        return {}


def check_forced(**fields):
    hosts = recheck.HostCheck(Membership(), Placement, 4000)
    hosts.forced(
        CONTEXT,
        objects.RequestSpec(**fields),
        Decision(
            Destination(),
            AggregateIndex(),
            Replacement(frozenset({UUID})),
        ),
    )


def no_build_request(monkeypatch):
    def get(*args):
        raise nova_exception.BuildRequestNotFound(uuid=UUID)

    replace(monkeypatch, 'nova.objects.BuildRequest.get_by_instance_uuid', get)
    images.read(objects.RequestSpec(instance_uuid=UUID), None)


def spec():
    return objects.RequestSpec(
        flavor=objects.Flavor(extra_specs={}), instance_uuid=UUID
    )


def required_traits():
    request = spec()
    accepted = images.AcceptedImage({})
    return adapter.NovaRequest(request, accepted).required_traits


# The uses of Nova for a request; the last one replaces a function itself.
USES = [
    lambda _: check_forced(force_hosts=['h1']),
    lambda _: check_forced(force_nodes=['n1']),
    lambda _: images.read(spec(), None),
    lambda _: adapter.query_length(spec()),
    lambda _: required_traits(),
    lambda _: source.NovaDatabaseSource(cfg.ConfigOpts(), None).aggregates(),
    lambda _: source.NovaDatabaseSource(cfg.ConfigOpts(), None).aggregates_of(
        ['h1']
    ),
    lambda _: placement.patient_adapter(),
    no_build_request,
]


@pytest.fixture
def working(monkeypatch):
    for name, function in RESULTS.items():
        replace(monkeypatch, name, function)
    return monkeypatch


def use_everything(monkeypatch):
    """Return how many uses have raised an error of ours."""
    errors = 0
    for use in USES:
        try:
            use(monkeypatch)
        except exception.IsolateAggregatesError:
            errors += 1
    return errors


def test_the_calls_are_those_with_a_result():
    assert set(FOUND) == set(RESULTS)


def test_nothing_fails_while_nova_works(working):
    assert use_everything(working) == 0


@pytest.mark.parametrize(
    'error', ERRORS, ids=lambda error: type(error).__name__
)
@pytest.mark.parametrize('name', FOUND)
def test_an_error_of_nova_becomes_one_of_ours(working, name, error):
    if name == 'nova.utils.get_ksa_adapter':
        # It reads no database.
        error = ks_exceptions.ClientException()

    def broken(*args, **kwargs):
        raise error

    replace(working, name, broken)
    assert use_everything(working) > 0


@pytest.mark.parametrize(
    'error', ERRORS, ids=lambda error: type(error).__name__
)
@pytest.mark.parametrize(
    ('owner', 'method'),
    [(sa.engine.Engine, 'connect'), (sa.engine.Connection, 'execute')],
)
def test_an_error_of_sqlalchemy_becomes_one_of_ours(
    working, owner, method, error
):
    def broken(*args, **kwargs):
        raise error

    engine()
    working.setattr(owner, method, broken)
    assert use_everything(working) > 0
