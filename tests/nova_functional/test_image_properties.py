# SPDX-License-Identifier: Apache-2.0
"""A filter sees the same image properties in Nova and on the command line."""

import random

from base import LiveTest, host_of
from glance_api import URL, GlanceApi
import pytest

from isolate_aggregates.filters import RequestFilter
from isolate_aggregates.filters.constraints import Forbid
from isolate_aggregates.filters.pipeline import LoadedFilter, Pipeline
from isolate_aggregates.nova import registration
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.cloud.live import glance
from isolate_aggregates_tools.request import Request

# Nova stores some unchanged, converts some, renames some and drops others.
VALUES = {
    'os_distro': ['debian', 'windows'],
    'vmware_ostype': ['otherGuest'],
    'hw_machine_type': ['q35', 'pc'],
    'hw_vif_multiqueue_enabled': ['true', 'yes', 'False'],
    'hw_cpu_sockets': ['1', '2'],
    'os_require_quiesce': ['no', '1'],
    'license:oracle': ['true', ''],
    'license:db2': ['é'],
    'color': ['red'],
    'trait:CUSTOM_A': ['required', 'forbidden'],
}


class Recorder(RequestFilter):
    """Records the image properties it sees, and excludes Debian images."""

    IMAGE_PROPERTIES = (
        'os_distro', 'hw_machine_type', 'hw_vif_multiqueue_enabled',
        'hw_cpu_sockets', 'os_require_quiesce', 'license:*',
    )  # fmt: skip

    def __init__(self):
        self.seen = None

    def __call__(self, request, aggregates):
        self.seen = dict(request.image_properties)
        if self.seen.get('os_distro') == 'debian':
            yield Forbid(tuple(aggregates), 'no Debian here')


class ImagePropertiesTest(LiveTest):
    """Images with random properties."""

    SOURCE = 'nova'

    def setUp(self):
        super().setUp()
        self.recorder = Recorder()
        self.install(self.recorder)

    def tearDown(self):
        self.paths_read.append('/os-aggregates')
        super().tearDown()

    def install(self, request_filter):
        runner = registration.installed()
        runner.filters = (LoadedFilter('recorder', request_filter),)
        runner._pipelines.clear()

    def seen_on_the_command_line(self, image):
        with GlanceApi(self.glance.images).interceptor:
            found = glance.GlanceClient(self.connection(image=URL)).image(
                image
            )
        pipeline = Pipeline({'recorder': self.recorder})
        request = Request(Flavor('f'), found)
        return dict(
            request.declaring(pipeline.image_properties).image_properties
        )

    @pytest.mark.slow
    def test_filters_and_commands_see_the_same_image_properties(self):
        self._create_trait('CUSTOM_A')
        flavor = self.flavor()
        chance = random.Random(13)
        for _ in range(8):
            names = chance.sample(sorted(VALUES), chance.randint(0, 6))
            if 'trait:CUSTOM_A' in names:
                names.remove('trait:CUSTOM_A')
            image = self.image(
                {name: chance.choice(VALUES[name]) for name in names}
            )
            server = self.boot(flavor, image=image)
            seen = self.recorder.seen
            assert seen == self.seen_on_the_command_line(image), names
            self._delete_server(server)

    def test_filters_and_commands_see_the_same_image_traits(self):
        for value in ('required', 'forbidden'):
            image = self.image({'trait:CUSTOM_A': value, 'color': 'red'})
            # No host has the trait.
            status = 'ERROR' if value == 'required' else 'ACTIVE'
            self.boot(self.flavor(), image=image, status=status)
            seen = self.recorder.seen
            assert seen == self.seen_on_the_command_line(image)
            assert ('trait:CUSTOM_A' in seen) == (value == 'required')

    def test_a_filter_that_reads_a_property_works_inside_nova(self):
        self.aggregate('no-debian', ['host1'])
        for distribution, host in (('debian', 'host2'), ('suse', 'host1')):
            image = self.image({'os_distro': distribution})
            server = self.boot(self.flavor(), image=image)
            assert host_of(server) == host
