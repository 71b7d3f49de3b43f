#!/usr/bin/env bash
# Expected: [filter_scheduler] available_filters takes the dotted names of
#   filter classes and of modules. The name of a function is an error.
# Seen: a function without arguments is called once when the host manager is
#   made, before the first request, and must return a list of classes. Nova uses
#   this itself for all_filters.
# Package: nova 34.0.0
# Why: the one configured place where a package can run code in nova-scheduler
#   before it serves; this is how request filters can be added without a fork.
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


calls = []


class NoHost(filters.BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        return False


def plugin():
    calls.append('called')
    return [NoHost]


site = types.ModuleType('site_filters')
site.plugin = plugin
sys.modules['site_filters'] = site

CONF = nova.conf.CONF
CONF([], default_config_files=[])
section = 'filter_scheduler'
CONF.set_override('available_filters', ['site_filters.plugin'], section)
CONF.set_override('enabled_filters', ['NoHost'], section)
CONF.set_override('track_instance_changes', False, section)
objects.register_all()
with tempfile.NamedTemporaryFile(suffix='.sqlite') as file:
    url = f'sqlite:///{file.name}'
    CONF.set_override('connection', url, 'api_database')
    api.configure(CONF)
    migration.db_sync(database='api', context=context.get_admin_context())
    manager = host_manager.HostManager()

enabled = [type(one).__name__ for one in manager.enabled_filters]
print('nova', metadata.version('nova'))
print('calls of the function:', len(calls))
print('enabled filters:', *enabled)
if (len(calls), enabled) != (1, ['NoHost']):
    sys.exit('changed')
PROGRAM
# seen: nova 34.0.0
# seen: calls of the function: 1
# seen: enabled filters: NoHost
