# SPDX-License-Identifier: Apache-2.0
"""Starts a nova-scheduler that has the hook, and prints what it does.

It is a separate program, as Nova's configuration is global in a process. Its
argument is the path of nova.conf, and it prints JSON. The caller provides a
Nova with the hook.
"""

import json
import sys

from nova import config, objects
from nova import context as nova_context
import nova.conf
from nova.scheduler import request_filter
from scheduler_start import HostManager

from isolate_aggregates.nova import status
from isolate_aggregates.nova.runner import Finish, Runner


def request_spec():
    """Return a request without keys."""
    flavor = objects.Flavor(
        name='f', flavorid='f', vcpus=1, memory_mb=64, root_gb=1,
        ephemeral_gb=0, swap=0, extra_specs={},
    )  # fmt: skip
    return objects.RequestSpec.from_components(
        nova_context.get_admin_context(),
        '7b7e6a64-4e59-4d1a-9c0c-1f9c1e8f7d11',
        image=None,
        flavor=flavor,
        numa_topology=None,
        pci_requests=None,
        filter_properties={},
        instance_group=None,
        availability_zone=None,
    )


def count(kind, name):
    """Count the calls of a method."""
    calls = []
    original = getattr(kind, name)

    def counted(*args):
        calls.append(args)
        return original(*args)

    setattr(kind, name, counted)
    return calls


def main(path):
    config.parse_args(['nova-scheduler', '--config-file', path])
    objects.register_all()
    in_tree = list(request_filter.ALL_REQUEST_FILTERS)
    # What a SchedulerManager does at its start, and for a request.
    HostManager()
    filters = request_filter.load_filters()
    runs, finishes = count(Runner, '__call__'), count(Runner, 'finish')
    spec = request_spec()
    context = nova_context.get_admin_context()
    request_filter.process_reqspec(context, spec, filters)
    destination = spec.requested_destination
    print(
        json.dumps(
            {
                'list': in_tree == request_filter.ALL_REQUEST_FILTERS
                and not any(
                    isinstance(one, (Runner, Finish)) for one in in_tree
                ),
                'filters': [one.__name__ for one in filters],
                'runs': [len(runs), len(finishes)],
                'forbidden': sorted(destination.forbidden_aggregates or ()),
                'registration': status.Checks(nova.conf.CONF)
                ._check_registration()
                .code.name,
            }
        )
    )


if __name__ == '__main__':
    main(sys.argv[1])
