#!/usr/bin/env bash
# Expected: for "--availability-zone zone:host" Nova narrows the hosts to that
#   one and asks the enabled host filters about it.
# Seen: no host filter is asked. One that accepts no host at all leaves the
#   forced host in, as if it had passed.
# Package: nova 34.0.0
# Why: isolation that is only a host filter does not hold for servers that an
#   administrator puts on a host; what must hold has to be in the query before.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    nova==34.0.0 SQLAlchemy==2.0.41
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import sys
import tempfile
import types
import warnings

warnings.simplefilter('ignore')  # of eventlet, when it is imported

from nova import config, context, objects
from nova.db import migration
from nova.db.api import api
import nova.conf
from nova.scheduler import filters, host_manager


class NoHost(filters.BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        return False


def passing(manager, **fields):
    hosts = [host_manager.HostState(name, name, None) for name in ('a', 'b')]
    request = objects.RequestSpec(
        requested_destination=None,
        ignore_hosts=[],
        force_nodes=[],
        scheduler_hints={},
        instance_uuid='5dde4b13-764a-5a81-93fd-8ecdac212f2f',
        **fields,
    )
    return [host.host for host in manager.get_filtered_hosts(hosts, request)]


site = types.ModuleType('site_filters')
site.NoHost = NoHost
NoHost.__module__ = 'site_filters'
sys.modules['site_filters'] = site

CONF = nova.conf.CONF
CONF([], default_config_files=[])
section = 'filter_scheduler'
CONF.set_override('available_filters', ['site_filters.NoHost'], section)
CONF.set_override('enabled_filters', ['NoHost'], section)
CONF.set_override('track_instance_changes', False, section)
objects.register_all()
with tempfile.NamedTemporaryFile(suffix='.sqlite') as file:
    url = f'sqlite:///{file.name}'
    CONF.set_override('connection', url, 'api_database')
    api.configure(CONF)
    migration.db_sync(database='api', context=context.get_admin_context())
    manager = host_manager.HostManager()
    free = passing(manager, force_hosts=[])
    forced = passing(manager, force_hosts=['b'])

print('nova', metadata.version('nova'))
print('hosts that pass a filter which accepts none:', free)
print('the same with host b forced:', forced)
if (free, forced) != ([], ['b']):
    sys.exit('changed')
PROGRAM
# seen: nova 34.0.0
# seen: hosts that pass a filter which accepts none: []
# seen: the same with host b forced: ['b']
