# SPDX-License-Identifier: Apache-2.0
"""Playbooks and programs, each with what it did and what a real Nova did.

``programs/outcomes.yaml`` says of each what it changed, and all requests to
Nova that are no mere reading. ``tests/nova_functional`` makes the same ones to
a real Nova.
"""

from operator_tools import EXAMPLES
from oslo_config import cfg
import pytest
import yaml

from isolate_aggregates import options
from isolate_aggregates_tools.cloud import diff
from isolate_aggregates_tools.commands import clouds, differences
from isolate_aggregates_tools.rehearse import between

OUTCOMES = yaml.safe_load((EXAMPLES / 'outcomes.yaml').read_text())
RUN = {'.yml': 'ansible-playbook', '.sh': 'sh', '.py': 'python'}
PATHS = sorted(p for p in EXAMPLES.iterdir() if p.suffix in RUN)


def outcome(rehearsal, path):
    """Run a program; return what came of it, as texts."""
    ended = rehearsal.run([RUN[path.suffix], str(path)], timeout=300)
    world = rehearsal.world
    conf = cfg.ConfigOpts()
    options.register_own_opts(conf)
    conf([], default_config_files=[])
    clouds.apply_settings(conf, world.before)
    changes = differences.rows(diff.changes(world.before, world.snapshot))
    found = {
        'ended': ended.status,
        # Objects are in the order of their ids, which may be random.
        'changes': sorted(' | '.join(map(text, row)) for row in changes),
        'gaps': list(between.sentences(world, conf)),
        'unknown': world.unknown,
        'nova': [
            {
                'request': f'{call.method} {call.path}',
                'minor': call.minor,
                'body': call.body,
                'status': call.status,
            }
            for call in world.calls
            if call.service == 'nova' and call.is_change
        ],
    }
    return {key: value for key, value in found.items() if value}


def text(value):
    return str(getattr(value, 'human_readable', lambda: value)())


@pytest.mark.parametrize('path', PATHS, ids=lambda path: path.stem)
def test_what_a_program_does(rehearsal, path):
    assert outcome(rehearsal, path) == OUTCOMES[path.stem]


def test_each_outcome_is_of_a_program():
    assert sorted(OUTCOMES) == [path.stem for path in PATHS]
