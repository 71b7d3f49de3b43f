# SPDX-License-Identifier: Apache-2.0
"""Reservations that were saved are read as those of the live cloud."""

import json
import subprocess
import sys

from fake_nova import uuid
import narrow
import pytest
import reservation_world
from reservation_world import HOUR, PROJECT
import yaml

from isolate_aggregates_reservations import api as reservations
from isolate_aggregates_reservations.commands import times
from isolate_aggregates_tools.cloud.live import live_cloud
from isolate_aggregates_tools.domains import Keystone, Project
from isolate_aggregates_tools.identity import KeystoneClient

ID = '4d17d41a-830d-47b2-91c7-4f9fc0ae611e'
OTHER = '5e28e52b-941e-48c3-82d8-5f0ad1bf722f'
ENDED = '6f39f63c-a52f-49d4-93e9-60bbe2c0830a'
NEEDS = {'VCPU': 4, 'MEMORY_MB': 64}
SHAPE = reservations.Shape(4, 64)


def reading(now):
    """Return the arguments of each command that reads, by what it shows."""
    # Of fixed periods: the live cloud is read some seconds later.
    first, last = (times.text(now + hours * HOUR) for hours in (-8, -1))
    period = ('--since', first, '--until', last)
    return {
        'list': ('list',),
        'show by id': ('show', ID),
        'show by name': ('show', 'course'),
        'calendar': ('calendar', 'list', '--start', last, '--end', '2d'),
        'hosts': ('host', 'list'),
        'history': ('history', 'list', *period),
        'history by name': (
            'history',
            'list',
            '--reservation',
            'old',
            *period,
        ),
        'project by name': ('history', 'list', '--project', 'web', *period),
        'other project': ('history', 'list', '--project', 'b' * 32, *period),
    }


pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures('two_hosts', 'operated', 'no_images'),
]


class NoImages:
    """A Glance without images."""

    def images(self):
        """Return the images."""
        return []


@pytest.fixture
def no_images(monkeypatch):
    """Let the cloud have no images, and names of projects."""
    monkeypatch.setattr(live_cloud.LiveCloud, 'glance', NoImages())
    known = Keystone({'d': 'Default'}, (Project(PROJECT, 'web', 'd'),))
    monkeypatch.setattr(KeystoneClient, 'everything', lambda _: known)
    monkeypatch.setattr(
        KeystoneClient, 'project', lambda _, *names: known.project(*names)
    )


def offline(*arguments, stdin=None):
    """Run a command where there is no cloud."""
    return subprocess.run(
        [sys.executable, '-m', 'isolate_aggregates_tools', *arguments],
        capture_output=True,
        text=True,
        env={'PATH': '/usr/bin:/bin'},
        input=stdin,
    )


def fill(world, now):
    """Have reservations in all states, and servers with a slot and without."""

    def create(name, reservation_id, start, end, amount):
        wanted = reservations.new(
            PROJECT,
            amount,
            SHAPE,
            now + start,
            now + end,
            name=name,
            reservation_id=reservation_id,
        )
        reservations.create(world.store, wanted, now + start - HOUR)

    create('old', ENDED, -9 * HOUR, -5 * HOUR, 1)
    for _ in range(2):
        reservations.reconcile_all(world.store, now - 4 * HOUR)
    create('course', ID, -2 * HOUR, HOUR, 2)
    create('later', OTHER, 5 * HOUR, 9 * HOUR, 1)
    reservations.reconcile_all(world.store, now - HOUR)
    assert world.boot('s1', 'h1', ID, NEEDS)
    assert world.boot('s2', 'h1', None, {'VCPU': 1})


def test_all_commands_that_read_answer_alike(world, run, tmp_path):
    now = times.now().replace(microsecond=0)
    fill(world, now)
    path = tmp_path / 'cloud.yaml'
    saved = reservation_world.typed(
        run, 'snapshot', 'save', '--no-servers', '--output', str(path)
    )
    assert (saved.code, saved.err) == (0, '')
    with_servers(path)
    for what, command in reading(now).items():
        words = ('reservation', *command, '-f', 'json')
        live = reservation_world.typed(run, *words)
        then = offline(*words, '--snapshot', '-', stdin=path.read_text())
        assert (then.returncode, json.loads(then.stdout or '{}')) == (
            live.code,
            json.loads(live.out),
        ), (what, then.stderr)
        # Only what is wrong with the host is said, and by both.
        assert unstamped(then.stderr) == unstamped(live.err), what


def test_none_breaks_a_word_on_a_narrow_terminal(world, run, monkeypatch):
    now = times.now().replace(microsecond=0)
    fill(world, now)

    def typed(*words):
        return reservation_world.typed(run, *words)

    for what, command in reading(now).items():
        if what == 'other project':
            # It has no reservation.
            continue
        words = ('reservation', *command)
        assert narrow.broken(typed, monkeypatch, *words) == [], what


def with_servers(path):
    """Add the servers to a cloud file: this Nova does not list them."""
    document = yaml.safe_load(path.read_text())
    flavors = {'s1': f'reservation:{ID}', 's2': {'name': 'plain', 'vcpus': 1}}
    document['servers'] = [
        {
            'id': uuid(3, name),
            'project': PROJECT,
            'flavor': flavor,
            'host': 'h1',
        }
        for name, flavor in flavors.items()
    ]
    path.write_text(yaml.safe_dump(document, sort_keys=False))


def unstamped(lines):
    """Return what was logged."""
    return [line for line in lines.splitlines() if line]
