# SPDX-License-Identifier: Apache-2.0
"""A real Placement inside this process, on SQLite in memory.

This is the real service (``openstack-placement``, extra ``embedded``).
HTTP calls to its WSGI application are intercepted within the process.
Placement keeps its database in module state, so only one can run at a time.
"""

from collections.abc import Iterator
import contextlib
import threading
from typing import Any

from keystoneauth1 import adapter, session, token_endpoint
from oslo_config import cfg

from isolate_aggregates_tools import errors as tools_errors
from isolate_aggregates_tools.placement.client import PlacementClient

_in_use = threading.Lock()

# Never resolved: wsgi-intercept answers for it.
_URL = 'http://placement.embedded/placement'


class EmbeddedPlacement:
    """A new, empty Placement, from :meth:`open` to :meth:`close`.

    While it is open, ``application`` is its WSGI application.
    """

    application: Any

    def __init__(self) -> None:
        self._exit = contextlib.ExitStack()

    def open(self) -> adapter.Adapter:
        """Start it and return a keystoneauth adapter for its endpoint."""
        if not _in_use.acquire(blocking=False):
            raise tools_errors.EmbeddedPlacementUnavailable(
                'An embedded Placement is running already; only one can run '
                'in a process.'
            )
        with contextlib.ExitStack() as stack:
            stack.callback(_in_use.release)
            client, self.application = _start(stack)
            self._exit = stack.pop_all()
        return client

    def close(self) -> None:
        """Stop it and delete its data."""
        self._exit.close()


@contextlib.contextmanager
def embedded_client() -> Iterator[PlacementClient]:
    """Start a new, empty Placement and yield a client for it."""
    with contextlib.closing(EmbeddedPlacement()) as placement:
        yield PlacementClient(placement.open())


def one_at_a_time(application: Any) -> Any:
    """Return a WSGI application that handles one request at a time.

    On SQLite, Placement fails requests that write at the same time: there is
    only one connection, or "database is locked" where there are several.
    """
    lock = threading.Lock()

    def handle(environ: Any, start_response: Any) -> list[bytes]:
        with lock:
            return list(application(environ, start_response))

    return handle


def _start(stack: contextlib.ExitStack) -> tuple[adapter.Adapter, Any]:
    try:
        from oslo_db.sqlalchemy import enginefacade
        from placement import conf as placement_conf
        from placement import db_api, deploy, policy
        from placement.db.sqlalchemy import migration
        from placement.objects import resource_class, trait
        from wsgi_intercept import interceptor
    except ImportError as exc:
        raise tools_errors.EmbeddedPlacementUnavailable(
            f'The embedded Placement is not installed ({exc}); install '
            'isolate-aggregates-tools[embedded].'
        ) from exc

    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    conf.set_override('connection', 'sqlite://', 'placement_database')
    # With this, the token "admin" has administrator rights.
    conf.set_override('auth_strategy', 'noauth2', 'api')
    # Ignore configuration files, policy files and environment.
    conf([], default_config_files=[], default_config_dirs=[], use_env=False)
    # The administrator of noauth2 has no role "service" and no scope.
    # Placement before 16 enforces the scope; oslo.policy 6 has no such option.
    for option in ('enforce_new_defaults', 'enforce_scope'):
        if option not in conf.oslo_policy:
            conf.register_opt(cfg.BoolOpt(option), 'oslo_policy')
        conf.set_override(option, False, 'oslo_policy')

    # A separate database instead of the global one. For an in-memory database
    # oslo.db uses one connection for all threads.
    database = enginefacade.transaction_context()
    # The database is gone with that connection, so an old one is kept, too.
    database.configure(
        connection='sqlite://',
        sqlite_synchronous=False,
        connection_recycle_time=-1,
    )
    stack.callback(db_api.placement_context_manager.patch_factory(database))
    engine = database.writer.get_engine()
    stack.callback(engine.dispose)
    migration.create_schema(engine)

    # Placement records per process that it has filled these tables.
    trait._TRAITS_SYNCED = False
    resource_class._RESOURCE_CLASSES_SYNCED = False
    policy.reset()
    stack.callback(policy.reset)
    application = one_at_a_time(deploy.loadapp(conf))
    stack.enter_context(
        interceptor.RequestsInterceptor(lambda: application, url=_URL)
    )
    client = adapter.Adapter(
        session.Session(auth=token_endpoint.Token(_URL, 'admin')),
        service_type='placement',
    )
    return client, application
