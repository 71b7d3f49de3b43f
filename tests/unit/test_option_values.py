# SPDX-License-Identifier: Apache-2.0
"""Values of options that oslo.config accepts, but that cannot be used."""

from oslo_config import cfg
import pytest

from isolate_aggregates import conf as ia_conf
from isolate_aggregates import exception
from isolate_aggregates import options as tools_options

OPTIONS = [
    (group, option)
    for group, options in tools_options.list_opts(connection=False)
    if group != tools_options.DEFAULT
    for option in options
]


@pytest.fixture
def problem(tmp_path):
    """Return a function that returns what is wrong with a line."""

    def of_line(group, line):
        path = tmp_path / 'nova.conf'
        path.write_text(f'[{group}]\n{line}\n')
        conf = cfg.ConfigOpts()
        tools_options.register_own_opts(conf)
        conf([f'--config-file={path}'], default_config_files=[])
        try:
            tools_options.check(conf)
        except exception.ConfigError as exc:
            return str(exc)
        return ''

    return of_line


@pytest.mark.parametrize(
    ('group', 'option'), OPTIONS, ids=[f'{g}-{o.dest}' for g, o in OPTIONS]
)
def test_no_option_with_a_default_may_be_empty(problem, group, option):
    """As a template writes it whose variable is empty."""
    said = problem(group, f'{option.dest} =')
    # A list may be empty, and so may a text.
    is_number = isinstance(option, cfg.IntOpt | cfg.FloatOpt)
    if is_number and option.default is not None:
        assert said == (
            f'Configuration option [{group}] {option.dest} is empty; give it '
            f'a value, or remove it for the default, {option.default}.'
        )
    elif said:
        assert said.startswith(
            f'Configuration option [{group}] {option.dest} '
        )


@pytest.mark.parametrize('value', ['nan', 'inf'])
@pytest.mark.parametrize(
    'option',
    [option.dest for _, option in OPTIONS if isinstance(option, cfg.FloatOpt)],
)
def test_numbers_must_be_finite(problem, option, value):
    assert problem(ia_conf.GROUP, f'{option} = {value}') == (
        f'Configuration option [isolate_aggregates] {option} cannot be used: '
        f'{value} is not a finite number.'
    )


@pytest.mark.parametrize('sources', ['', 'image'])
def test_traits_of_flavors_cannot_be_left_out(problem, sources):
    """They open aggregates with any value of the option."""
    assert problem(ia_conf.GROUP, f'trait_sources = {sources}') == (
        'Configuration option [isolate_aggregates] trait_sources does not '
        'have flavor, but the traits of a flavor always open an isolated '
        'aggregate; set it to flavor, or to flavor,image.'
    )


@pytest.mark.parametrize('sources', ['flavor', 'flavor,image', 'image,flavor'])
def test_traits_of_images_can(problem, sources):
    assert problem(ia_conf.GROUP, f'trait_sources = {sources}') == ''
