# SPDX-License-Identifier: Apache-2.0
"""The proposed hook for request filters in Nova, and our use of it.

``etc/upstream/nova/request-filters.patch`` is applied to a copy of the Nova
that is installed.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
from unittest import mock

import nova
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
import nova.conf
from nova.scheduler import request_filter
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_upgradecheck.upgradecheck import Code
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates.nova import hook, registration, status

ROOT = pathlib.Path(__file__).parents[2]
PATCH = ROOT / 'etc/upstream/nova/request-filters.patch'
EXAMPLE = ROOT / 'examples/windows-licensing.yaml'

INSTANCE = '7b7e6a64-4e59-4d1a-9c0c-1f9c1e8f7d11'

IN_TREE = [one.__name__ for one in request_filter.ALL_REQUEST_FILTERS]
PIPELINE, LIMIT = (
    'isolate_aggregates_pipeline',
    'isolate_aggregates_query_limit',
)
OURS = [
    *(PIPELINE if name == 'isolate_aggregates' else name for name in IN_TREE),
    LIMIT,
]


@pytest.fixture
def conf():
    """The configuration of a Nova that has the hook."""
    fixture = config_fixture.Config(nova.conf.CONF)
    fixture.setUp()
    ia_conf.register_opts(fixture.conf)
    fixture.register_opt(
        cfg.ListOpt('request_filters', default=IN_TREE), group='scheduler'
    )
    fixture.config(
        available_filters=['isolate_aggregates.nova.all_filters'],
        enabled_filters=['IsolatedAggregatesFilter'],
        group='filter_scheduler',
    )
    fixture.config(enable_isolated_aggregate_filtering=True, group='scheduler')
    fixture.config(
        request_filters=['isolate_aggregates'],
        aggregate_source='file',
        cloud_file=str(EXAMPLE),
        group=ia_conf.GROUP,
    )
    fixture.config(request_filters=OURS, group='scheduler')
    yield fixture
    registration.uninstall()
    fixture.cleanUp()


def test_with_the_hook_the_list_of_nova_is_left_alone(conf):
    before = list(request_filter.ALL_REQUEST_FILTERS)
    runner = registration.install(conf.conf)
    assert before == request_filter.ALL_REQUEST_FILTERS
    assert registration.installed() is runner
    registration.uninstall()
    assert before == request_filter.ALL_REQUEST_FILTERS


@pytest.mark.parametrize(
    ('names', 'said'),
    [
        pytest.param(
            IN_TREE, f'must contain {PIPELINE} exactly once', id='as before'
        ),
        pytest.param(
            [*OURS, PIPELINE],
            f'must contain {PIPELINE} exactly once',
            id='twice',
        ),
        pytest.param(
            OURS[:-1], f'must contain {LIMIT} exactly once,', id='no limit'
        ),
        pytest.param(
            [LIMIT, *OURS[:-1]],
            f'must contain {LIMIT} exactly once,',
            id='not last',
        ),
        pytest.param(
            [LIMIT, *OURS],
            f'must contain {LIMIT} exactly once,',
            id='limit twice',
        ),
        pytest.param(
            [*IN_TREE, PIPELINE, LIMIT],
            'must not contain isolate_aggregates, because',
            id='beside the one that it replaces',
        ),
    ],
)
def test_a_list_that_would_not_isolate_stops_nova_scheduler(conf, names, said):
    conf.config(request_filters=names, group='scheduler')
    with pytest.raises(exception.ConfigError) as caught:
        registration.install(conf.conf)
    assert said in caught.value.problem
    checked = status.Checks(conf.conf)._check_registration()
    assert checked.code == Code.FAILURE
    assert said in checked.details


def test_the_in_tree_filter_may_stay_where_none_of_ours_replaces_it(conf):
    conf.config(request_filters=['isolate_tenants'], group=ia_conf.GROUP)
    conf.config(request_filters=[*IN_TREE, PIPELINE, LIMIT], group='scheduler')
    registration.install(conf.conf)


def test_a_hook_without_the_filters_refuses_every_request():
    objects.register_all()
    registration.uninstall()
    context = nova_context.get_admin_context()
    for one in (
        hook.isolate_aggregates_pipeline,
        hook.isolate_aggregates_query_limit,
    ):
        with pytest.raises(nova_exception.RequestFilterFailed):
            one(context, objects.RequestSpec(instance_uuid=INSTANCE))


@pytest.mark.parametrize('place', range(4))
def test_requests_are_isolated_during_a_second_installation(
    conf, monkeypatch, place
):
    """As by the next worker in the same process, on a Nova without hook."""
    objects.register_all()
    conf.conf.clear_override('request_filters', 'scheduler')
    monkeypatch.setattr(registration, '_has_hook', lambda conf: False)
    filters = [lambda *_: False, request_filter.isolate_aggregates]
    monkeypatch.setattr(request_filter, 'ALL_REQUEST_FILTERS', filters)
    registration.install(conf.conf)

    def install_again(context, request_spec):
        if registration.installed() is first:
            registration.install(conf.conf)

    first = registration.installed()
    filters.insert(place, install_again)
    last = mock.Mock(return_value=False)
    filters.append(last)
    spec = objects.RequestSpec(
        instance_uuid=INSTANCE,
        flavor=objects.Flavor(
            name='f', flavorid='f', vcpus=1, memory_mb=64, root_gb=1,
            ephemeral_gb=0, swap=0, extra_specs={},
        ),
    )  # fmt: skip
    request_filter.process_reqspec(nova_context.get_admin_context(), spec)
    assert registration.installed() is not first
    assert len(spec.requested_destination.forbidden_aggregates) == 1
    last.assert_called_once()


@pytest.fixture(scope='module')
def patched(tmp_path_factory):
    """A folder with a Nova that has the hook."""
    folder = tmp_path_factory.mktemp('patched')
    changed = {
        pathlib.PurePath(path)
        for path in re.findall(
            r'^\+\+\+ b/(.+)$', PATCH.read_text('utf-8'), re.MULTILINE
        )
    }
    assert pathlib.PurePath('nova/scheduler/request_filter.py') in changed
    installed = pathlib.Path(nova.__file__).parents[1]
    above = {parent for path in changed for parent in path.parents}
    for place in sorted(above - {pathlib.PurePath()}):
        (folder / place).mkdir()
        # Release notes are not part of the installed package.
        if not (installed / place).exists():
            continue
        for entry in (installed / place).iterdir():
            path = place / entry.name
            if path in changed:
                (folder / path).write_bytes(entry.read_bytes())
            elif path not in above and entry.name != '__pycache__':
                (folder / path).symlink_to(entry)
    # As if it were not in a git clone.
    alone = {**os.environ, 'GIT_CEILING_DIRECTORIES': str(folder.parent)}
    subprocess.run(['git', 'apply', PATCH], cwd=folder, env=alone, check=True)
    return folder


def run(patched, *arguments):
    """Run Python with that Nova."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=patched,
        env={**os.environ, 'PYTHONPATH': str(patched)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_with_the_patch_novas_own_tests_pass(patched):
    done = run(
        patched,
        *('-m', 'unittest', '-v'),
        'nova.tests.unit.scheduler.test_request_filter',
        'nova.tests.unit.scheduler.test_manager',
    )
    assert done.returncode == 0, done.stderr
    # The tests that the patch adds were run, too.
    assert 'TestLoadFilters.test_unknown_filter' in done.stderr


def configuration(tmp_path, names=''):
    path = tmp_path / 'nova.conf'
    path.write_text(
        '[filter_scheduler]\n'
        'available_filters = nova.scheduler.filters.all_filters\n'
        'available_filters = isolate_aggregates.nova.all_filters\n'
        'enabled_filters = ComputeFilter,IsolatedAggregatesFilter\n'
        '[scheduler]\n'
        'enable_isolated_aggregate_filtering = true\n'
        f'{names}\n'
        '[isolate_aggregates]\n'
        'request_filters = isolate_aggregates\n'
        'aggregate_source = file\n'
        f'cloud_file = {EXAMPLE}\n'
    )
    return path


def test_with_the_patch_our_filters_run_once_and_by_the_hook(
    patched, tmp_path
):
    few = ['compute_status_filter', PIPELINE, 'accelerators_filter', LIMIT]
    names = f'request_filters = {",".join(few)}'
    program = pathlib.Path(__file__).with_name('hook_start.py')
    done = run(patched, program, configuration(tmp_path, names))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        'list': True,
        'filters': few,
        'runs': [1, 1],
        'forbidden': ['2a451f34-a46c-59cb-8bd8-52a5c083071d'],
        'registration': 'SUCCESS',
    }


def test_with_the_patch_alone_nova_scheduler_does_not_start(patched, tmp_path):
    """Our filters would not run, and servers could use any host."""
    program = pathlib.Path(__file__).with_name('hook_start.py')
    done = run(patched, program, configuration(tmp_path))
    assert done.returncode != 0
    assert f'must contain {PIPELINE} exactly once' in done.stderr
