# SPDX-License-Identifier: Apache-2.0
"""What the tools do where the distribution of reservations is missing."""

import pytest

from isolate_aggregates import entry_points
from isolate_aggregates.request import Flavor

GROUP = 'isolate_aggregates.cli'


@pytest.fixture(autouse=True)
def _not_installed(monkeypatch):
    """Be where no command about reservations is installed."""
    found = entry_points.installed

    def without(group):
        points = found(group)
        if group != GROUP:
            return points
        return [
            one for one in points if not one.name.startswith('reservation_')
        ]

    monkeypatch.setattr(entry_points, 'installed', without)


def test_a_cloud_without_reservations_is_audited(live, run, in_environment):
    assert run('audit').err == ''


def test_a_cloud_that_has_them_is_not_said_to_be_in_order(
    live, run, in_environment
):
    live.nova.flavors.append(
        Flavor(
            'of-a-reservation',
            'f-1',
            vcpus=1,
            ram=64,
            extra_specs={'resources:CUSTOM_RESERVATION_X': '1'},
        )
    )
    finished = run('audit')
    assert finished.code == 1
    assert finished.err == (
        'Reservations are read by the distribution '
        'isolate-aggregates-reservations, which is not installed here: '
        'install it beside isolate-aggregates-tools.\n'
    )


def test_a_command_of_theirs_is_refused_with_where_it_is(run):
    finished = run('reservation', 'list')
    assert finished.code == 2
    assert finished.err == (
        "There is no command 'reservation list': it belongs to the "
        'distribution isolate-aggregates-reservations, which is not installed '
        'here.\n'
    )
