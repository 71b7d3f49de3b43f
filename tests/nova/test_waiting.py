# SPDX-License-Identifier: Apache-2.0
"""No request waits for the trouble of another one."""

import threading

from dripping import dripping_server
from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import noauth, session
from nova import objects
import pytest
import requests
import requests_mock

from isolate_aggregates import exception
from isolate_aggregates.aggregates import AggregateIndex
from isolate_aggregates.filters import Refuse, RequestFilter
from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.nova import adapter, images, placement
from isolate_aggregates.rest.deadline import Deadline
from isolate_aggregates.upgrade_check.limit_probe import measure
from isolate_aggregates_tools.placement.client import PlacementClient

objects.register_all()

IMAGE = '00000000-0000-0000-0000-000000000001'
# Long enough to fail the test; no test waits for it.
FOREVER = 30


def request(uuid):
    return objects.RequestSpec(
        instance_uuid=uuid,
        image=objects.ImageMeta(
            id=IMAGE, properties=objects.ImageMetaProps.from_dict({})
        ),
    )


class License(RequestFilter):
    IMAGE_PROPERTIES = ('license:*',)

    def __call__(self, request, aggregates):
        yield Refuse(request.image_properties['license:a'])


def test_a_slow_cell_blocks_no_other_request(monkeypatch):
    is_reading, may_answer = threading.Event(), threading.Event()
    slow, fast = request(IMAGE), request(IMAGE.replace('1', '2'))

    def read(spec, cell, all_recorded):
        if spec is fast:
            return images.AcceptedImage({'license:a': 'fast'})
        is_reading.set()
        assert may_answer.wait(FOREVER)
        return images.AcceptedImage({'license:a': 'slow'})

    monkeypatch.setattr(images, 'read', read)
    decider, pipeline = adapter.Decider(bool), Pipeline({'one': License()})
    refusals = []

    def decide(spec):
        decision = decider.decide(spec, AggregateIndex(), pipeline)
        refusals.extend(decision.destination.refusals)

    threads = [threading.Thread(target=decide, args=(slow,), daemon=True)]
    threads[0].start()
    try:
        assert is_reading.wait(FOREVER)
        threads.append(
            threading.Thread(target=decide, args=(fast,), daemon=True)
        )
        threads[1].start()
        threads[1].join(5)
        assert refusals == ['fast']
    finally:
        may_answer.set()
        for thread in threads:
            thread.join(FOREVER)
    assert refusals == ['fast', 'slow']


def test_a_dripping_server_exceeds_a_deadline():
    with dripping_server() as server:
        client = PlacementClient(server.adapter(), retries=0)
        deadline = Deadline('Placement', 0.2)
        with pytest.raises(
            exception.ServiceUnreachable,
            match=r'Placement has not answered completely within 0\.2 s',
        ):
            deadline.run(client.resource_providers)
        assert server.requests == 1
        assert not server.has_ended


@pytest.mark.parametrize(
    'call',
    [
        lambda: placement.impatient_client().resource_providers(),
        lambda: measure(placement.impatient_adapter(), placement.IMPATIENT),
    ],
    ids=['a request', 'the measured limit'],
)
def test_a_timeout_names_the_options_of_nova_scheduler(monkeypatch, call):
    monkeypatch.setattr(
        placement.utils,
        'get_ksa_adapter',
        lambda service: ks_adapter.Adapter(
            session.Session(noauth.NoAuth()),
            service_type='placement',
            endpoint_override='http://placement',
        ),
    )
    with requests_mock.Mocker() as http:
        http.get(requests_mock.ANY, exc=requests.ReadTimeout)
        with pytest.raises(exception.ServiceUnreachable) as caught:
            call()
    assert str(caught.value) == (
        'Placement at http://placement does not answer in time; check whether '
        'it is overloaded, or allow more seconds with [placement] timeout, of '
        'which at most 5 are used here.'
    )
