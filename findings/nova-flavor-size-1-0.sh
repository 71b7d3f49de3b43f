#!/usr/bin/env bash
# Expected: nova-api takes 1.0 for a flavor's size in JSON as 1, as JSON schema
#   does, or refuses it with 400 as it does 1.5.
# Seen: its schema takes 1.0 for an integer, what creates the flavor does not,
#   and the answer is 500, "Unexpected API Error".
# Package: nova 34.0.0
# Why: programs that compute sizes write such numbers. The 500 looks like a
#   failure of Nova, so clients and operators repeat the request.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    nova==34.0.0 SQLAlchemy==2.0.41
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import logging
import sys
import warnings

warnings.simplefilter('ignore')  # of eventlet, when it is imported

import webob.exc

from nova import context, exception
import nova.conf
from nova.api.openstack import api_version_request, wsgi
from nova.api.openstack.compute import flavors

logging.disable()  # the traceback of the 500
nova.conf.CONF([], project='nova', default_config_files=[])


def answered(ram):
    """Return the status of a request that does not reach the database."""
    request = wsgi.Request.blank('/flavors')
    request.environ['nova.context'] = context.RequestContext(
        'user', 'project', is_admin=True, roles=['admin']
    )
    request.api_version_request = api_version_request.APIVersionRequest('2.1')
    flavor = {'name': 'f', 'vcpus': 1, 'ram': ram, 'disk': 1}
    try:
        flavors.FlavorsController().create(request, body={'flavor': flavor})
    except webob.exc.HTTPException as error:
        return error.code
    except exception.NovaException as error:
        return error.code


print('nova', metadata.version('nova'))
seen = {ram: answered(ram) for ram in (1.5, '1.0', 1.0)}
for ram, status in seen.items():
    print(f'ram {ram!r} is answered', status)
if seen != {1.5: 400, '1.0': 400, 1.0: 500}:
    sys.exit('changed')
PROGRAM
# seen: nova 34.0.0
# seen: ram 1.5 is answered 400
# seen: ram '1.0' is answered 400
# seen: ram 1.0 is answered 500
