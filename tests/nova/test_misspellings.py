# SPDX-License-Identifier: Apache-2.0
"""Whatever is misspelt in nova.conf is named before servers are scheduled."""

from cases import cases
import nova.conf.database
import nova.conf.scheduler
from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code
import pytest

from isolate_aggregates import options as tools_options
from isolate_aggregates.upgrade_check.checks import Checks
from isolate_aggregates.upgrade_check.unknown import unknown_names

# Every value that has a name or a limited range.
VALUES = [
    ('scheduler', 'enable_isolated_aggregate_filtering', 'true'),
    ('scheduler', 'placement_req_required_member_prefix', 'reservation:'),
    (
        *('scheduler', 'placement_req_default_forbidden_member_prefix'),
        'reservation:',
    ),
    ('scheduler', 'max_placement_results', '1000'),
    (
        *('filter_scheduler', 'available_filters'),
        'nova.scheduler.filters.all_filters',
    ),
    (
        *('filter_scheduler', 'available_filters'),
        'isolate_aggregates.nova.all_filters',
    ),
    ('filter_scheduler', 'enabled_filters', 'ComputeFilter'),
    ('filter_scheduler', 'enabled_filters', 'IsolatedAggregatesFilter'),
    ('isolate_aggregates', 'request_filters', 'isolate_aggregates'),
    ('isolate_aggregates', 'request_filters', 'reservation_prefix'),
    ('isolate_aggregates', 'trait_sources', 'flavor'),
    ('isolate_aggregates', 'reservation_key_sources', 'image'),
    ('isolate_aggregates', 'reservation_required', 'false'),
    ('isolate_aggregates', 'aggregate_source', 'file'),
    ('isolate_aggregates', 'max_query_length', '4000'),
    ('isolate_aggregates', 'aggregate_deadline', '5'),
    ('isolate_aggregates', 'on_source_failure', 'refuse'),
    ('isolate_aggregates', 'valid_interfaces', 'internal'),
    ('isolate_aggregates', 'auth_type', 'password'),
]

CLOUD = """\
version: 1
aggregates:
- name: reserved
  hosts: []
  metadata: {"reservation:1": ""}
"""


def misspellings(word):
    """Return a word without a letter, with one twice, two swapped, one more.

    Each changes the middle, so that no ending decides.
    """
    if word.isdecimal():
        return [f'{word}s', f'-{word}', f'{word} 0']
    half = len(word) // 2
    swapped = next(
        place
        for place in range(half - 1, 0, -1)
        if word[place] != word[place + 1]
    )
    return [
        word[:half] + word[half + 1 :],
        word[:half] + word[half] + word[half:],
        word[:swapped]
        + word[swapped + 1]
        + word[swapped]
        + word[swapped + 2 :],
        f'{word}s',
    ]


@pytest.fixture
def read(tmp_path):
    """Return a function that reads lines of a nova.conf."""

    def configuration(lines):
        path = tmp_path / 'nova.conf'
        path.write_text('\n'.join(lines))
        conf = cfg.ConfigOpts()
        for module in (
            nova.conf.database,
            nova.conf.scheduler,
        ):
            module.register_opts(conf)
        tools_options.register_opts(conf)
        conf(
            [f'--config-file={path}'],
            default_config_files=[],
            default_config_dirs=[],
        )
        return conf

    return configuration


@pytest.fixture
def lines(tmp_path):
    """The lines of a nova.conf that is right, by section."""
    cloud = tmp_path / 'cloud.yaml'
    cloud.write_text(CLOUD)
    sections = {}
    for section, option, value in VALUES:
        options = sections.setdefault(section, [])
        place = next(
            (
                place
                for place, line in enumerate(options)
                if line.startswith(f'{option} =')
            ),
            None,
        )
        if place is None or option == 'available_filters':
            options.append(f'{option} = {value}')
        else:
            options[place] += f',{value}'
    sections['isolate_aggregates'].append(f'cloud_file = {cloud}')
    return sections


def text(sections):
    return [
        line
        for section, options in sections.items()
        for line in (f'[{section}]', *options)
    ]


def problems(conf):
    """Return what the checks of the configuration alone report."""
    checks = Checks(conf)
    return ' '.join(
        result.details
        for result in (
            checks.result('Start'),
            checks.result('Names in the configuration'),
            checks.result('Registration'),
            checks.result('Request filters'),
            checks.result('Aggregate source'),
            checks.result('Switched-off filters'),
        )
        if result.code is not Code.SUCCESS
    )


def test_a_correct_file_has_no_problems(read, lines):
    assert problems(read(text(lines))) == ''


# Sections of Nova with names that are too short for a near one to be meant.
SHORT = ('pci', 'cinder')
OPTIONS = [
    (group, option.dest)
    for group, options in tools_options.list_opts()
    for option in options
    if group not in SHORT
]


@pytest.mark.parametrize(
    ('group', 'option'), OPTIONS, ids=[f'{g}-{o}' for g, o in OPTIONS]
)
def test_each_misspelt_option_is_named(read, group, option):
    for name in misspellings(option):
        assert any(
            f'option {name} in [{group}] has no effect' in unknown.problem
            for unknown in unknown_names(read([f'[{group}]', f'{name} = 1']))
        ), name


@pytest.mark.parametrize(
    'section',
    [
        group
        for group, _ in tools_options.list_opts()
        if group not in ('DEFAULT', *SHORT)
    ],
)
def test_each_misspelt_section_is_named(read, section):
    for name in misspellings(section):
        conf = read([f'[{name}]', 'request_filters = isolate_aggregates'])
        [unknown] = unknown_names(conf)
        assert f'section [{name}] has no effect (did you mean {section}?)' in (
            unknown.problem
        )
        # It may be that of another program.
        assert not unknown.is_certain


@pytest.mark.parametrize(
    ('section', 'option', 'value'),
    VALUES,
    ids=[f'{option}-{value}' for _, option, value in VALUES],
)
def test_each_misspelt_value_is_named(read, lines, section, option, value):
    for wrong in misspellings(value):
        changed = {
            name: [
                line.replace(value, wrong)
                if line.startswith(f'{option} = ') and value in line
                else line
                for line in options
            ]
            for name, options in lines.items()
        }
        # oslo.config does not repeat a number.
        named = option if value.isdecimal() else wrong
        assert named in problems(read(text(changed))), wrong


@pytest.mark.parametrize(
    ('section', 'option', 'place'),
    [
        ('DEFAULT', 'request_filters', 'isolate_aggregates'),
        (
            *('isolate_aggregates', 'enable_isolated_aggregate_filtering'),
            'scheduler',
        ),
        ('scheduler', 'enabled_filters', 'filter_scheduler'),
    ],
)
def test_an_option_in_the_wrong_section_is_named(read, section, option, place):
    [unknown] = unknown_names(read([f'[{section}]', f'{option} = 1']))
    assert unknown.problem.endswith(
        f'the option {option} in [{section}] has no effect there; move it to '
        f'[{place}]'
    )


def test_options_of_other_programs_are_not_checked(read):
    assert not [
        *unknown_names(
            read(
                [
                    '[scheduler]',
                    'workers = 2',
                    'weight_of_a_third_party = 1',
                    '[filter_scheduler]',
                    'isolated_images = 1',
                    '[keystone_authtoken]',
                    'auth_type = password',
                    '[of_a_third_party]',
                    'request_filters = 1',
                    '[placement]',
                    'auth_type = password',
                    'auth_url = http://keystone.test',
                    'password = secret',
                    '[isolate_aggregates]',
                    'auth_type = password',
                    'username = nova',
                    'password = secret',
                ]
            )
        )
    ]


def test_credentials_of_another_section_are_not_read(read):
    """With auth_section keystoneauth reads nothing else of ours."""
    [unknown] = unknown_names(
        read(
            [
                '[isolate_aggregates]',
                'auth_section = placement',
                'password = secret',
                '[placement]',
                'auth_type = password',
            ]
        )
    )
    assert 'the option password in [isolate_aggregates]' in unknown.problem
    assert 'secret' not in unknown.problem


@cases(
    ('changes', 'problem'),
    {
        'filter without switch': (
            {
                'scheduler': [],
                'isolate_aggregates': ['request_filters=isolate_aggregates'],
            },
            '[isolate_aggregates] request_filters has isolate_aggregates, '
            'which does not run while [scheduler] '
            'enable_isolated_aggregate_filtering is false',
        ),
        'setting without filter': (
            {
                'scheduler': [
                    'enable_isolated_aggregate_filtering=true',
                    'placement_req_required_member_prefix=reservation:',
                ],
                'isolate_aggregates': ['request_filters=isolate_aggregates'],
            },
            '[scheduler] placement_req_required_member_prefix has no effect, '
            'because [isolate_aggregates] request_filters does not have '
            'reservation_prefix',
        ),
        'pasted': (
            {'filter_scheduler': ['enabled_filters=ComputeFilter,...']},
            '[filter_scheduler] enabled_filters names ..., which '
            'available_filters does not provide, so nova-scheduler does not '
            'start; correct or remove it.',
        ),
        'similar host filter': (
            {
                'filter_scheduler': [
                    'available_filters=isolate_aggregates.nova.all_filters',
                    'enabled_filters=IsolatedAggregateFilter',
                ]
            },
            '(did you mean IsolatedAggregatesFilter?)',
        ),
    },
)
def test_settings_without_effect_are_named(read, lines, changes, problem):
    source = lines['isolate_aggregates']
    source = [one for one in source if 'file' in one or 'aggregate_s' in one]
    lines.update(changes)
    lines['isolate_aggregates'] = [
        *source,
        *changes.get('isolate_aggregates', ()),
    ]
    assert problem in problems(read(text(lines)))
