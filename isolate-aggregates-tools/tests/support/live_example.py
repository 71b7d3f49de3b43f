# SPDX-License-Identifier: Apache-2.0
"""A cloud file as a live cloud: mostly the Windows licensing example."""

import pathlib

from fake_nova import FakeNova
from http_fakes import GLANCE, NOVA, FakeGlance, FakeKeystone
import placement_backup
import requests_mock

from isolate_aggregates_tools.cloud.file import cloud_file, load
from isolate_aggregates_tools.compute.client import ComputeNode
from isolate_aggregates_tools.embedded import EmbeddedPlacement
from isolate_aggregates_tools.placement.client import PlacementClient

EXAMPLE = pathlib.Path(__file__).parents[3] / 'examples/windows-licensing.yaml'

# What switches the isolation of the example on.
ISOLATE = '[scheduler]\nenable_isolated_aggregate_filtering = true\n'


class Live:
    """The example as a live cloud.

    :param http: Where its services answer.
    :param example: The cloud file.
    """

    def __init__(self, http, example=EXAMPLE):
        self._placement = EmbeddedPlacement()
        adapter = self._placement.open()
        self.placement = PlacementClient(adapter)
        self.placement_url = adapter.get_endpoint()
        http.register_uri(
            requests_mock.ANY,
            requests_mock.ANY,
            real_http=True,
            additional_matcher=lambda request: request.url.startswith(
                self.placement_url
            ),
        )
        snapshot = cloud_file.load(example)
        placement_backup.play_once(
            example.read_text('utf-8'),
            lambda: load.into_placement(snapshot, self.placement),
        )
        FakeKeystone(
            http,
            {
                'compute': NOVA,
                'image': GLANCE,
                'placement': self.placement_url,
            },
        )
        self.nova = FakeNova(
            aggregates=list(snapshot.aggregates),
            flavors=list(snapshot.flavors),
            nodes=[
                ComputeNode(p.uuid, p.name, p.host)
                for p in snapshot.providers
                if p.host
            ],
        )
        self.nova.answer(http)
        FakeGlance(images=list(snapshot.images)).answer(http)
        self.images = {image.name: image.id for image in snapshot.images}

    def stop(self):
        """Prepare the Placement of a snapshot; may be called repeatedly."""
        self._placement.close()
