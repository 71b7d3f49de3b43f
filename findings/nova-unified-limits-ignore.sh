#!/usr/bin/env bash
# Expected: with unified_limits_resource_strategy = ignore a resource class
#   without a limit in Keystone is not limited, as its list says what to ignore.
# Seen: only the classes in the list are not. Each other one without a limit has
#   the limit 0, so a flavor that asks for it boots nowhere. With "require", the
#   default, it is the other way round: it boots, unless the list has the class.
# Package: nova 34.0.0, oslo.limit 2.12.0
# Why: programs that create classes, as reservations do for each, make flavors
#   that every project is "over quota" for, though hosts and slots are free.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    nova==34.0.0 oslo.limit==2.12.0 SQLAlchemy==2.0.41 fixtures==4.3.2
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import logging
import sys
import types
import warnings

warnings.simplefilter('ignore')  # of eventlet, when it is imported

from nova import context, exception, objects
import nova.conf
from nova.limit import placement, utils
from oslo_limit import fixture, limit

# What Keystone has limits for.
LIMITS = {'servers': 10, 'class:VCPU': 99, 'class:MEMORY_MB': 9999}

logging.disable()  # each class without a limit is an error there
CONF = nova.conf.CONF
CONF([], project='nova', default_config_files=[])
objects.register_all()
utils.IDENTITY_CLIENT = types.SimpleNamespace(
    registered_limits=lambda: [
        types.SimpleNamespace(resource_name=name) for name in LIMITS
    ]
)


def boots(strategy, named, extra_specs):
    """Return whether a project that uses nothing may create a server."""
    CONF.set_override('driver', 'nova.quota.UnifiedLimitsDriver', 'quota')
    CONF.set_override('unified_limits_resource_strategy', strategy, 'quota')
    CONF.set_override('unified_limits_resource_list', named, 'quota')
    CONF.set_override('endpoint_id', 'nova', 'oslo_limit')
    enforcer = limit.Enforcer(lambda project, names: dict.fromkeys(names, 0))
    spec = objects.RequestSpec(
        flavor=objects.Flavor(
            vcpus=2,
            memory_mb=512,
            root_gb=0,
            ephemeral_gb=0,
            swap=0,
            extra_specs=extra_specs,
        ),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        is_bfv=False,
        requested_resources=[],
        pci_requests=None,
        numa_topology=None,
    )
    try:
        placement.enforce_num_instances_and_resources(
            context.RequestContext('user', 'project'),
            *('project', spec, 1, 1),
            enforcer=enforcer,
        )
    except exception.TooManyInstances:
        return False
    return True


SLOT = 'class:CUSTOM_SLOT'
seen = {}
with fixture.LimitFixture(LIMITS, {}):
    for strategy, named in (
        ('require', ['servers']),
        ('require', ['servers', SLOT]),
        ('ignore', []),
        ('ignore', [SLOT]),
    ):
        for specs in ({}, {'resources:CUSTOM_SLOT': '1'}):
            key = f'{strategy} {", ".join(named) or "nothing"}; {specs or "{}"}'
            seen[key] = boots(strategy, named, specs)

for name in ('nova', 'oslo.limit'):
    print(name, metadata.version(name))
for how, answer in seen.items():
    print(f'{how}:', 'boots' if answer else 'over quota')
if [*seen.values()] != [
    *(True, True, True, False),
    *(True, False, True, True),
]:
    sys.exit('changed')
PROGRAM
# seen: nova 34.0.0
# seen: oslo.limit 2.12.0
# seen: require servers; {}: boots
# seen: require servers; {'resources:CUSTOM_SLOT': '1'}: boots
# seen: require servers, class:CUSTOM_SLOT; {}: boots
# seen: require servers, class:CUSTOM_SLOT; {'resources:CUSTOM_SLOT': '1'}: over quota
# seen: ignore nothing; {}: boots
# seen: ignore nothing; {'resources:CUSTOM_SLOT': '1'}: over quota
# seen: ignore class:CUSTOM_SLOT; {}: boots
# seen: ignore class:CUSTOM_SLOT; {'resources:CUSTOM_SLOT': '1'}: boots
