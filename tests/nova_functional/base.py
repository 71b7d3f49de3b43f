# SPDX-License-Identifier: Apache-2.0
"""A real nova-scheduler with the filters switched on by configuration only."""

import re
import time

from keystoneauth1 import loading, session, token_endpoint
from nova.api import auth
import nova.conf
from nova.scheduler import request_filter
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional import integrated_helpers
from nova.tests.functional.api import client
from oslo_utils.fixture import uuidsentinel
from placement import deploy
import uninstalling

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import options as tools_options
from isolate_aggregates.aggregates import rollups
from isolate_aggregates.nova import runner
from isolate_aggregates.rest.connection import Connection
from isolate_aggregates_tools import embedded
from isolate_aggregates_tools.cloud.live.live_cloud import LiveCloud

CONF = nova.conf.CONF

# More than anything takes here, also on a busy machine.
SECONDS = 300
# After these a server that nothing is done with will not change any more.
SECONDS_AT_REST = 30

NEUTRAL = (
    'No valid host was found. Scheduling failed: no host may be used for this '
    'request; an operator can look up the reason by its request ID,'
)

# Options that switch the filters on.
ISOLATE = ('scheduler', 'enable_isolated_aggregate_filtering', True)
RESERVATIONS_CLOSE = (
    'scheduler',
    'placement_req_default_forbidden_member_prefix',
    ['reservation:'],
)
RESERVATIONS = (
    ('scheduler', 'placement_req_required_member_prefix', ['reservation:']),
    RESERVATIONS_CLOSE,
)

LOCK = 'trait:CUSTOM_LICENSED_WINDOWS'
ROLLUP = rollups.uuid_of(LOCK)

# Those of Nova's Glance fixture; neither says anything about traits.
IMAGE = '155d900f-4e14-4e4c-a73d-069cbf4541e6'
OTHER_IMAGE = 'a2459075-d96c-40d5-893e-577ff92e721c'


def request_filter_names():
    """Return the names of the request filters of Nova, ours one by one."""
    names = []
    for one in request_filter.ALL_REQUEST_FILTERS:
        ours = one.filters if isinstance(one, runner.Runner) else ()
        names += [f.name for f in ours] or [one.__name__]
    return names


def _patient(name, is_over=lambda self, *args: False):
    """Wrap one of Nova's methods so that it is retried until it succeeds.

    :param is_over: Returns whether it will hardly succeed any more.
    """

    def wait(self, *args, **kwargs):
        began_at = time.monotonic()
        while True:
            try:
                return getattr(super(Patient, self), name)(*args, **kwargs)
            except AssertionError as failure:
                over = is_over(self, *args)
                seconds = SECONDS_AT_REST if over else SECONDS
                if time.monotonic() > began_at + seconds:
                    self.fail(f'{failure}\n{_recorded(self, *args)}')

    return wait


def _recorded(test, *args):
    """Return what Nova has recorded of a server: states, actions, faults."""
    if not args or 'OS-EXT-STS:task_state' not in args[0]:
        return ''
    number = args[0]['id']
    api = test.admin_api
    server = api.get_server(number)
    lines = [
        f'status {server["status"]}, task {server["OS-EXT-STS:task_state"]}, '
        f'host {server["OS-EXT-SRV-ATTR:host"]}, fault {server.get("fault")}'
    ]
    migrations = api.api_get('/os-migrations').body['migrations']
    lines += [
        f'{m["migration_type"]} from {m["source_compute"]} '
        f'to {m["dest_compute"]}: {m["status"]}'
        for m in migrations
        if m['instance_uuid'] == number
    ]
    for action in api.get_instance_actions(number):
        details = api.get_instance_action_details(number, action['request_id'])
        lines += [
            f'{event["event"]}: {event["result"]} {event["traceback"] or ""}'
            for event in details['events']
        ]
    return '\n'.join(lines)


def _is_at_rest(test, server, *args):
    server = test.admin_api.get_server(server['id'])
    return server['status'] in {'ACTIVE', 'ERROR'} and (
        server['OS-EXT-STS:task_state'] is None
    )


class Patient:
    """Mixed into a functional test of Nova, waits on a busy machine too.

    Nova's own methods give up after five seconds.
    """

    _wait_for_assert = _patient('_wait_for_assert')
    _wait_for_instance_action_event = _patient(
        '_wait_for_instance_action_event'
    )
    _wait_for_log = _patient('_wait_for_log')
    _wait_for_server_allocations = _patient('_wait_for_server_allocations')
    _wait_for_server_parameter = _patient(
        '_wait_for_server_parameter', _is_at_rest
    )
    _wait_for_service_parameter = _patient('_wait_for_service_parameter')
    _wait_until_deleted = _patient('_wait_until_deleted')
    _wait_for_migration = _patient('_wait_for_migration_status', _is_at_rest)

    def _wait_for_migration_status(self, server, expected_statuses):
        """Wait until Nova has finished with a server, even if it did not move.

        It says before that it could not.
        """
        migration = self._wait_for_migration(server, expected_statuses)
        if 'error' in expected_statuses:
            self._wait_for_server_parameter(
                server, {'OS-EXT-STS:task_state': None}
            )
        return migration


class Plugin(Patient):
    """Mixed into a functional test of Nova, switches the filters on.

    The constants are the nova.conf of the test; ``OPTIONS`` are groups,
    options and values.
    """

    AVAILABLE = 'isolate_aggregates.nova.all_filters'
    REQUEST_FILTERS = ('isolate_aggregates',)
    SOURCE = 'nova'
    OPTIONS = ()

    def setUp(self):
        tools_options.register_opts(CONF)
        self.flags(
            available_filters=[
                'nova.scheduler.filters.all_filters',
                self.AVAILABLE,
            ],
            enabled_filters=[
                *CONF.filter_scheduler.enabled_filters,
                'IsolatedAggregatesFilter',
            ],
            group='filter_scheduler',
        )
        self.flags(
            request_filters=list(self.REQUEST_FILTERS),
            aggregate_source=self.SOURCE,
            group=ia_conf.GROUP,
        )
        # A compute service whose turn comes late is not down.
        self.flags(service_down_time=SECONDS)
        for group, option, value in self.OPTIONS:
            self.flags(group=group, **{option: value})
        self.addCleanup(uninstalling.uninstall)
        load = deploy.loadapp
        self.stub_out(
            'placement.deploy.loadapp',
            lambda conf: embedded.one_at_a_time(load(conf)),
        )
        super().setUp()
        # Registered by now. A call that is answered late is not lost.
        self.flags(rpc_response_timeout=SECONDS)

    def reach_placement(self):
        """Configure Placement as in a nova.conf.

        Nova's fixture hands its client a Placement and needs none.
        """
        CONF.register_opts(
            loading.get_auth_plugin_conf_options('admin_token'), 'placement'
        )
        self.flags(
            auth_type='admin_token',
            token='admin',
            endpoint=self.placement.fixture.endpoint,
            endpoint_override=self.placement.fixture.endpoint,
            group='placement',
        )

    def __delattr__(self, name):
        # Nova's tests drop their attributes at the end, which pytest wants to
        # do as well.
        if name in self.__dict__:
            super().__delattr__(name)


class OverApi:
    """A mixin for Plugin that reads the aggregates from Nova's API.

    keystonemiddleware is not there, as in all functional tests of Nova, so
    what it makes of a token is done here.
    """

    SOURCE = 'novaclient'
    TOKEN = 'the-token-of-nova-scheduler'

    def setUp(self):
        ia_conf.register_opts(CONF)
        CONF.register_opts(
            loading.get_auth_plugin_conf_options('admin_token'), ia_conf.GROUP
        )
        self.flags(
            auth_type='admin_token',
            token=self.TOKEN,
            endpoint=f'http://{uuidsentinel.osapi_host}:80/v2.1',
            aggregate_cache_ttl=0,
            group=ia_conf.GROUP,
        )
        super().setUp()
        self.paths_read = []
        create_context = auth.NovaKeystoneContext._create_context

        def with_token(env, **kwargs):
            if env.get('HTTP_X_AUTH_TOKEN') == self.TOKEN:
                self.paths_read.append(env['PATH_INFO'])
                env.update(
                    HTTP_X_AUTH_USER='admin',
                    HTTP_X_AUTH_PROJECT_ID='service',
                    HTTP_X_ROLES='admin,member,reader',
                )
            return create_context(env, **kwargs)

        self.stub_out(
            'nova.api.auth.NovaKeystoneContext._create_context', with_token
        )

    def tearDown(self):
        assert '/os-aggregates' in self.paths_read
        super().tearDown()


class CloudTest(Plugin, integrated_helpers.ProviderUsageBaseTestCase):
    """A small cloud in which nothing but the filters decides.

    The scheduler prefers the hosts in the order of ``HOSTS``: while there is
    room, a server that is not on host1 was kept from it.
    """

    HOSTS = ('host1', 'host2')
    compute_driver = 'fake.MediumFakeDriver'

    def setUp(self):
        self.useFixture(
            nova_fixtures.HostNameWeigherFixture(
                {host: -place for place, host in enumerate(self.HOSTS)}
            )
        )
        super().setUp()
        for host in self.HOSTS:
            self._start_compute(host)

    def restart_scheduler(self):
        """Let nova-scheduler start with the configuration of now."""
        self.scheduler_service.stop()
        self.scheduler_service = self.start_service('scheduler')

    def aggregate(self, name, hosts=(), metadata=None, zone=None):
        """Make an aggregate and return its number."""
        number = self._create_aggregate(name, zone)
        for host in hosts:
            self.admin_api.add_host_to_aggregate(number, host)
        self.tag(number, metadata or {})
        return number

    def tag(self, number, metadata):
        """Change metadata of an aggregate; None takes a key away."""
        if metadata:
            self.admin_api.post_aggregate_action(
                number, {'set_metadata': {'metadata': metadata}}
            )

    def give_trait(self, host, trait):
        """Add a custom trait to a host."""
        self._create_trait(trait)
        provider = self._get_provider_uuid_by_host(host)
        traits = self._get_provider_traits(provider)
        self._set_provider_traits(provider, [*traits, trait])

    def flavor(self, extra_specs=None):
        """Make a small flavor and return its id."""
        return self._create_flavor(
            vcpu=1, memory_mb=64, disk=1, ephemeral=0, extra_spec=extra_specs
        )

    def image(self, properties):
        """Put an image into Glance and return its id."""
        image = self.glance.show(None, IMAGE)
        del image['id']
        image['properties'].update(properties)
        return self.glance.create(None, image)['id']

    def user(self, project):
        """Return an API client of a user who is not an administrator."""
        user = client.TestOpenStackClient(
            'fake',
            self.api_fixture.base_url,
            project_id=project,
            roles=['reader', 'member'],
        )
        user.microversion = 'latest'
        return user

    def boot(
        self,
        flavor,
        image=IMAGE,
        hints=None,
        project=nova_fixtures.PROJECT_ID,
        status='ACTIVE',
        zone=None,
    ):
        """Ask for a server as a user would; return it as an operator."""
        server = self._build_server(
            image_uuid=image, flavor_id=flavor, networks='none', az=zone
        )
        made = self.user(project).post_server(
            {'server': server, 'os:scheduler_hints': hints or {}}
        )
        return self._wait_for_state_change(made, status)

    def rebuild_refused(self, server, image):
        """Ask for a rebuild as the tenant does; it must be refused."""
        user = self.user(server['tenant_id'])
        user.post_server_action(server['id'], {'rebuild': {'imageRef': image}})
        server = self._wait_for_state_change(server, 'ERROR')
        # The tenant can do this with a hard reboot.
        self.admin_api.post_server_action(
            server['id'], {'os-resetState': {'state': 'active'}}
        )
        return self._wait_for_state_change(server, 'ACTIVE')

    def host_for(self, flavor, **request):
        """Boot a server and return the host it is on."""
        return host_of(self.boot(flavor, **request))

    def refusal_of(self, flavor, **request):
        """Boot a server that gets no host; return the reason.

        What its user is told if no request filter refused it, else what the
        log of nova-scheduler says: users are told the same of each refusal.
        """
        server = self.boot(flavor, status='ERROR', **request)
        assert host_of(server) is None
        message = self.told_of(server)
        matches = re.findall(
            f'Refused to schedule server {server["id"]} of project '
            rf'{server["tenant_id"]}, request (\S+): (.*)',
            self.log(),
        )
        if not matches:
            assert NEUTRAL not in message
            return message
        [(request_id, reason)] = matches
        assert message == f'{NEUTRAL} {request_id}'
        return reason

    def told_of(self, server):
        """Return the fault message that the user of a server can read."""
        user = self.user(server['tenant_id'])
        return user.get_server(server['id'])['fault']['message']

    def log(self):
        """Return what nova-scheduler, as all other services, has logged."""
        return self.stdlog.logger.output


class ShorteningCloudTest(CloudTest):
    """A small cloud whose nova-scheduler shortens queries."""

    def setUp(self):
        super().setUp()
        self.reach_placement()

    def licensed(self, hosts, number=12):
        """Make aggregates that are all locked alike."""
        return [
            self.aggregate(f'{hosts}-{i}', hosts, {LOCK: 'required'})
            for i in range(number)
        ]

    def roll_up(self, *hosts):
        """Put hosts into the rollup, as ``sync`` does."""
        for host in hosts:
            provider = self._get_provider_uuid_by_host(host)
            members = self._get_provider_aggregates(provider)
            self.put_aggregates(provider, [*members, ROLLUP])

    def put_aggregates(self, provider, uuids):
        """Replace the aggregates of a provider."""
        path = f'/resource_providers/{provider}'
        generation = self.placement.get(path, version='1.19').body[
            'generation'
        ]
        answer = self.placement.put(
            f'{path}/aggregates',
            {
                'aggregates': uuids,
                'resource_provider_generation': generation,
            },
            version='1.19',
        )
        assert answer.status == 200, answer.body


class LiveTest(OverApi, CloudTest):
    """A small cloud that is also asked over its APIs, as an operator does."""

    # What the Placement of Nova's fixtures takes for its administrator.
    TOKEN = 'admin'
    COMPUTE = f'http://{uuidsentinel.osapi_host}:80/v2.1'

    def auth(self):
        """Return the credentials of the operator."""
        return token_endpoint.Token(self.COMPUTE, self.TOKEN)

    def connection(self, own_session=None, **endpoints):
        """Return how the operator reaches the cloud."""
        return Connection(
            own_session or session.Session(self.auth()),
            endpoints={
                'compute': self.COMPUTE,
                'placement': self.placement.fixture.endpoint,
                **endpoints,
            },
        )

    def live_cloud(self):
        """Return the current state of the cloud."""
        return LiveCloud(CONF, self.connection)


def host_of(server):
    """Return the host of a server as an operator sees it."""
    return server['OS-EXT-SRV-ATTR:host']
