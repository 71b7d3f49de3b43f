# SPDX-License-Identifier: Apache-2.0
"""Prints which files of this package a request passes in nova-scheduler.

It is a separate program, as Nova's configuration is global in a process. Its
argument is the path of nova.conf. The output is JSON: the file of each call of
a function, in order, for a request that some aggregates are closed to.
"""

import json
import pathlib
import sys
import uuid

from nova import config, objects
from nova import context as nova_context
import nova.conf
from nova.db.api import api as api_db
from nova.db.api import models
from nova.scheduler import request_filter
import scheduler_start

import isolate_aggregates

PACKAGE = pathlib.Path(isolate_aggregates.__file__).parent
LOCKED = 20


def fill():
    """Create the tables of aggregates, with aggregates that are locked."""
    with api_db.context_manager.writer.get_engine().begin() as connection:
        models.BASE.metadata.create_all(connection)
        for number in range(1, LOCKED + 1):
            connection.execute(
                models.Aggregate.__table__.insert().values(
                    id=number,
                    uuid=str(uuid.UUID(int=number)),
                    name=f'a{number}',
                )
            )
            connection.execute(
                models.AggregateMetadata.__table__.insert().values(
                    aggregate_id=number,
                    key=f'trait:CUSTOM_{number}',
                    value='required',
                )
            )


def request():
    """Return a request that requires the trait of one aggregate."""
    return objects.RequestSpec(
        flavor=objects.Flavor(
            name='m1',
            flavorid='1',
            memory_mb=512,
            vcpus=1,
            root_gb=1,
            ephemeral_gb=0,
            swap=0,
            extra_specs={'trait:CUSTOM_7': 'required'},
        ),
        image=objects.ImageMeta.from_dict({'id': str(uuid.UUID(int=0))}),
        project_id='p',
        instance_uuid=str(uuid.UUID(int=1)),
        is_bfv=False,
        num_instances=1,
        availability_zone=None,
    )


def walked(spec):
    """Run all request filters, and return the file of each call of ours."""
    files = []

    def called(frame, event, _):
        path = pathlib.Path(frame.f_code.co_filename)
        if event == 'call' and path.is_relative_to(PACKAGE):
            files.append(str(path.relative_to(PACKAGE)))

    context = nova_context.get_admin_context()
    sys.setprofile(called)
    try:
        request_filter.process_reqspec(context, spec)
    finally:
        sys.setprofile(None)
    return files


def main(path):
    config.parse_args(['nova-scheduler', '--config-file', path])
    objects.register_all()
    api_db.configure(nova.conf.CONF)
    fill()
    scheduler_start.HostManager()
    # The first request imports, and computes what later ones use.
    for _ in range(2):
        spec = request()
        files = walked(spec)
    assert spec.requested_destination.forbidden_aggregates
    modules = sorted(scheduler_start.loaded())
    print(json.dumps({'files': files, 'modules': modules}))


if __name__ == '__main__':
    main(sys.argv[1])
