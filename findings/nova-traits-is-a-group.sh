#!/usr/bin/env bash
# Expected: the extra spec traits:CUSTOM_A=required, with one letter too many,
#   is refused by the validation of nova-api, or has no effect.
# Seen: it is accepted. "s" is the name of a request group that has a trait and
#   no resources, so Nova asks for "resourcess=" with nothing after it.
# Package: nova 34.0.0
# Why: Placement refuses such a query with 400, and every boot of the flavor
#   ends in "No valid host was found.", which does not tell why.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    nova==34.0.0 SQLAlchemy==2.0.41
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import sys
import warnings

warnings.simplefilter('ignore')  # of eventlet, when it is imported

from urllib import parse

from nova import config, objects
from nova.api.validation.extra_specs import validators
from nova.scheduler import utils

objects.register_all()
name, value = 'traits:CUSTOM_A', 'required'
validators.validate(name, value)
request = objects.RequestSpec(
    flavor=objects.Flavor(
        name='f',
        vcpus=1,
        memory_mb=512,
        root_gb=1,
        ephemeral_gb=0,
        swap=0,
        extra_specs={name: value},
    ),
    image=objects.ImageMeta.from_dict({'properties': {}}),
    requested_resources=[],
    request_level_params=objects.RequestLevelParams(),
    is_bfv=False,
)
asked = utils.ResourceRequest.from_request_spec(request).to_querystring()
parts = dict(parse.parse_qsl(asked, keep_blank_values=True))
print('nova', metadata.version('nova'))
print(f'{name}={value} is valid')
print('asked:', asked)
if (parts.get('requireds'), parts.get('resourcess')) != ('CUSTOM_A', ''):
    sys.exit('changed')
PROGRAM
# seen: nova 34.0.0
# seen: traits:CUSTOM_A=required is valid
# seen: asked: limit=1000&requireds=CUSTOM_A&resources=DISK_GB%3A1%2CMEMORY_MB%3A512%2CVCPU%3A1&resourcess=
