#!/usr/bin/env bash
# Expected: trait:CUSTOM_A=forbidden works on an image as it does on a flavor:
#   the query to Placement forbids the trait.
# Seen: from a flavor it is in the query; from an image Nova drops it without a
#   word and asks for hosts with or without the trait.
# Package: nova 34.0.0
# Why: an image that must not run on some hosts does. Tag the hosts' aggregate,
#   or forbid the trait in the flavors.
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

from nova import config, objects
from nova.scheduler import utils


def query(extra_specs, properties):
    request = objects.RequestSpec(
        flavor=objects.Flavor(
            name='f',
            vcpus=1,
            memory_mb=512,
            root_gb=1,
            ephemeral_gb=0,
            swap=0,
            extra_specs=extra_specs,
        ),
        image=objects.ImageMeta.from_dict({'properties': properties}),
        requested_resources=[],
        request_level_params=objects.RequestLevelParams(),
        is_bfv=False,
    )
    asked = utils.ResourceRequest.from_request_spec(request)
    return asked.to_querystring()


objects.register_all()
forbidden = {'trait:CUSTOM_A': 'forbidden'}
flavor, image = query(forbidden, {}), query({}, forbidden)
print('nova', metadata.version('nova'))
print('asked when the flavor forbids it:', flavor)
print('asked when the image forbids it:', image)
if ('CUSTOM_A' in flavor, 'CUSTOM_A' in image) != (True, False):
    sys.exit('changed')
PROGRAM
# seen: nova 34.0.0
# seen: asked when the flavor forbids it: limit=1000&required=%21CUSTOM_A&resources=DISK_GB%3A1%2CMEMORY_MB%3A512%2CVCPU%3A1
# seen: asked when the image forbids it: limit=1000&resources=DISK_GB%3A1%2CMEMORY_MB%3A512%2CVCPU%3A1
