#!/usr/bin/env bash
# Expected: an aggregate with os_require_quiesce=yes takes the images that have
#   os_require_quiesce=yes: the same text on both sides.
# Seen: AggregateImagePropertiesIsolation excludes the host. The image's text
#   has become a boolean, whose text is "True", and that is compared with the
#   text of the aggregate. Numbers lose leading zeros in the same way.
# Package: nova 34.0.0
# Why: an aggregate tagged with what "openstack image show" prints can be closed
#   to the very images it is for; only the text "True" or "False" works.
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
from nova.scheduler import host_manager
from nova.scheduler.filters import aggregate_image_properties_isolation


def request(properties):
    return objects.RequestSpec(
        flavor=objects.Flavor(name='f', extra_specs={}),
        image=objects.ImageMeta.from_dict({'properties': properties}),
    )


def host(*metadata_of_aggregates):
    state = host_manager.HostState('host', 'host', None)
    state.aggregates = [
        objects.Aggregate(name=f'aggregate-{number}', metadata=one)
        for number, one in enumerate(metadata_of_aggregates)
    ]
    return state


objects.register_all()

isolation = (
    aggregate_image_properties_isolation.AggregateImagePropertiesIsolation()
)
passes = {}
for value in ('yes', 'true', 'True'):
    tagged = host({'os_require_quiesce': value})
    image = request({'os_require_quiesce': value})
    passes[value] = isolation.host_passes(tagged, image)

print('nova', metadata.version('nova'))
print('the same text on both sides passes:', passes)
if passes != {'yes': False, 'true': False, 'True': True}:
    sys.exit('changed')
PROGRAM
# seen: nova 34.0.0
# seen: the same text on both sides passes: {'yes': False, 'true': False, 'True': True}
