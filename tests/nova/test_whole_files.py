# SPDX-License-Identifier: Apache-2.0
"""The check of names in a nova.conf as deployment tools write it."""

import pathlib

import nova.conf
from oslo_config import fixture as config_fixture
from oslo_upgradecheck.upgradecheck import Code
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates.upgrade_check.checks import Checks

FILES = sorted(pathlib.Path(__file__).with_name('whole_files').glob('*.conf'))


@pytest.fixture
def check(tmp_path):
    """Return a function that checks the names in the text of a nova.conf."""
    conf = nova.conf.CONF

    def of_text(text):
        path = tmp_path / 'nova.conf'
        path.write_text(text, 'utf-8')
        ia_conf.register_opts(conf)
        conf(
            [f'--config-file={path}'],
            default_config_files=[],
            default_config_dirs=[],
        )
        result = Checks(conf).result('Names in the configuration')
        return result.code, (result.details or '').replace(f'{path}: ', '')

    with config_fixture.Config(conf):
        yield of_text
    conf.clear()


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_what_deployment_tools_write_passes_in_silence(check, path):
    assert check(path.read_text('utf-8')) == (Code.SUCCESS, '')


# Each with the text that replaces another in all files, and what is said.
MISTAKES = {
    'switch': (
        'enable_isolated_aggregate_filtering',
        'enable_isolated_aggregates_filtering',
        Code.FAILURE,
        'the option enable_isolated_aggregates_filtering in [scheduler] has '
        'no effect (did you mean enable_isolated_aggregate_filtering?).',
    ),
    'host filters': (
        '\nenabled_filters',
        '\nenabled_filter',
        Code.FAILURE,
        'the option enabled_filter in [filter_scheduler] has no effect (did '
        'you mean enabled_filters?).',
    ),
    'entry of the plugin': (
        '\navailable_filters',
        '\navailable_filter',
        Code.FAILURE,
        'the option available_filter in [filter_scheduler] has no effect '
        '(did you mean available_filters?).',
    ),
    'option of ours': (
        '\naggregate_source',
        '\naggregates_source',
        Code.FAILURE,
        'the option aggregates_source in [isolate_aggregates] has no effect '
        '(did you mean aggregate_source?).',
    ),
    'section of ours': (
        '[isolate_aggregates]',
        '[isolated_aggregates]',
        Code.WARNING,
        'the section [isolated_aggregates] has no effect (did you mean '
        'isolate_aggregates?).',
    ),
    'section of Nova': (
        '[filter_scheduler]',
        '[filters_scheduler]',
        Code.WARNING,
        'the section [filters_scheduler] has no effect (did you mean '
        'filter_scheduler?).',
    ),
    'place': (
        '\n[placement]',
        '\n[placement]\nlimit_tenants_to_placement_aggregate = true',
        Code.FAILURE,
        'the option limit_tenants_to_placement_aggregate in [placement] has '
        'no effect there; move it to [scheduler].',
    ),
    'removed host filters': (
        '[DEFAULT]',
        '[DEFAULT]\nscheduler_default_filters = ComputeFilter',
        Code.WARNING,
        'the option scheduler_default_filters in [DEFAULT] is no longer read '
        'by Nova; use [filter_scheduler] enabled_filters.',
    ),
    'removed driver': (
        '[scheduler]',
        '[scheduler]\ndriver = filter_scheduler',
        Code.WARNING,
        'the option driver in [scheduler] is no longer read by Nova; remove '
        'it.',
    ),
    # An option of Nova that this package does not read.
    'place of an option of Nova': (
        '[scheduler]',
        '[scheduler]\ntrack_instance_changes = true',
        Code.FAILURE,
        'the option track_instance_changes in [scheduler] has no effect '
        'there; move it to [filter_scheduler].',
    ),
    # Deployments have it, but no Nova ever read it.
    'option that never was': (
        '[scheduler]',
        '[scheduler]\nquery_placement_for_traits_in_extra_specs = true',
        Code.FAILURE,
        'the option query_placement_for_traits_in_extra_specs in [scheduler] '
        'has no effect, as Nova has no such request filter; remove it.',
    ),
}


@pytest.mark.parametrize('mistake', MISTAKES)
@pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)
def test_a_mistake_in_such_a_file_is_found(check, path, mistake):
    right, wrong, code, said = MISTAKES[mistake]
    text = path.read_text('utf-8')
    assert right in text
    assert check(text.replace(right, wrong)) == (code, said)
