# SPDX-License-Identifier: Apache-2.0
"""Expected errors are shown to the user as a single sentence."""

from importlib import metadata
import pathlib
import sys
import warnings

from cases import cases
from http_fakes import (
    CREDENTIALS,
    GLANCE,
    HTML,
    NOVA,
    PASSWORD,
    PLACEMENT,
)
from openstack.config import loader
import pytest
import requests
from sentences import sentence

from isolate_aggregates.aggregates import Aggregate
from isolate_aggregates.request import Flavor
from isolate_aggregates_tools.cli import app

EXAMPLE = pathlib.Path(__file__).parents[2] / 'examples/windows-licensing.yaml'
ON_EXAMPLE = ('--snapshot', str(EXAMPLE))
SMALL = ('--flavor', 'm1.small')


@pytest.fixture(autouse=True)
def no_clouds_yaml(monkeypatch):
    """Look for clouds.yaml only where a test creates one."""
    monkeypatch.setattr(loader, 'CONFIG_FILES', [])


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path."""

    def write_file(name, text):
        path = tmp_path / name
        path.write_text(text, 'utf-8')
        return str(path)

    return write_file


# What a request names


@cases(
    ('arguments', 'said'),
    {
        'no such flavor': (
            ('--flavor', 'huge'),
            f"There is no flavor with the name or id 'huge' in {EXAMPLE}.",
        ),
        'no such image': (
            (*SMALL, '--image', 'beos'),
            f"There is no image with the name or id 'beos' in {EXAMPLE}.",
        ),
        'no such host': (
            (*SMALL, '--host', 'nowhere'),
            'There is no compute host named nowhere.',
        ),
    },
)
@pytest.mark.parametrize(
    'command', ['candidate list', 'candidate list --query']
)
def test_a_missing_thing_is_named_with_the_place_searched(
    run, command, arguments, said
):
    assert sentence(run(*command.split(), *ON_EXAMPLE, *arguments)) == said


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        pytest.param(
            (
                'candidate',
                'list',
                '--query',
            ),
            '--flavor is required',
            id='no flavor',
        ),
        pytest.param(
            ('candidate', 'list', '--query', *SMALL, '--limit', '0'),
            "--limit must be a positive integer, not '0'",
            id='a limit of nothing',
        ),
        pytest.param(
            ('candidate', 'list', '--query', *SMALL, '--hint', 'reservation'),
            "--hint: 'reservation' is not a valid scheduler hint; "
            'write '
            '<key>=<value>',
            id='half a hint',
        ),
        pytest.param(
            ('--timeout', 'soon', 'candidate', 'list', '--query', *SMALL),
            "--timeout must be a number, not 'soon'",
            id='an invalid timeout',
        ),
        pytest.param(
            ('candidate', 'list', '--query', '--flavr', 'm1.small'),
            'there is no option --flavr (did you mean --flavor?)',
            id='a required option that is written wrong',
        ),
        pytest.param(
            ('candidate', 'list', '--query', *SMALL, '--somewhere=else'),
            'there is no option --somewhere',
            id='an option like no other',
        ),
        pytest.param(
            ('sync', '--swap'),
            'there is no option --swap',
            id='an option like another only by its dashes',
        ),
        pytest.param(
            ('--verbos', 'candidate', 'list', '--query'),
            'there is no option --verbos (did you mean --verbose?)',
            id='an option of the program that is written wrong',
        ),
        pytest.param(
            (*ON_EXAMPLE, 'list'),
            'there is no option --snapshot before the command; options of a '
            'command follow it',
            id='an option of a command before it',
        ),
        pytest.param(
            ('--config-file', '', 'candidate', 'list', '--query'),
            '--config-file must not be empty',
            id='a variable of the shell that is not set, of the program',
        ),
        pytest.param(
            ('candidate', 'list', '--query', '--flavor', ''),
            '--flavor must not be empty',
            id='a variable of the shell that is not set',
        ),
        pytest.param(
            (
                'candidate',
                'list',
                '--query',
                *SMALL,
                '--hint',
                'a=b',
                '--availability-zone=',
            ),
            '--availability-zone must not be empty',
            id='an option that ends with its name',
        ),
        pytest.param(
            ('effect', 'show', '--terraform-plan', ''),
            '--terraform-plan must not be empty',
            id='a file without a name',
        ),
        pytest.param(
            ('lock', 'show', ''),
            '<name> must not be empty',
            id='an empty name',
        ),
        pytest.param(
            (
                'lock',
                'create',
            ),
            '<aggregate> is required',
            id='a command without its arguments',
        ),
        pytest.param(
            ('reservation', 'create'),
            '--project is required',
            id='a command without its options',
        ),
        pytest.param(
            ('--os-cloud',),
            '--os-cloud needs a value',
            id='an option of the client without its value',
        ),
    ],
)
def test_invalid_arguments_exit_with_2_and_one_sentence(run, arguments, said):
    result = run(*arguments)
    assert (result.code, result.out) == (2, '')
    program, _, sentence = result.err.partition(': ')
    assert sentence == f'{said}. See {program} --help.\n'


def test_without_a_command_the_help_is_shown(run):
    result = run()
    assert result.code == 2
    assert result.err.startswith('usage: ')


# Configuration files


@cases(
    ('text', 'said'),
    {
        'an unknown filter': (
            '[isolate_aggregates]\nrequest_filters = nope\n',
            'Request filter nope is not installed; choose from ',
        ),
        'a filter twice': (
            '[isolate_aggregates]\nrequest_filters = isolate_tenants, '
            'isolate_tenants\n',
            'Configuration option [isolate_aggregates] request_filters names '
            'isolate_tenants twice; name each filter once.',
        ),
        'a prefix that Nova uses': (
            '[scheduler]\nplacement_req_required_member_prefix = trait:\n',
            'Configuration option [scheduler] '
            "placement_req_required_member_prefix has the prefix 'trait:', "
            "which also matches keys such as 'trait' that have another "
            'meaning in Nova; choose another prefix, such as "reservation:".',
        ),
        'neither true nor false': (
            '[scheduler]\nenable_isolated_aggregate_filtering = perhaps\n',
            'Configuration option [scheduler] '
            'enable_isolated_aggregate_filtering cannot be used: Unexpected '
            "boolean value 'perhaps'.",
        ),
        'too small a number': (
            '[scheduler]\nmax_placement_results = 0\n',
            'Configuration option [scheduler] max_placement_results cannot '
            'be used: Should be greater than or equal to 1.',
        ),
    },
)
@cases(
    'command',
    {
        'query': ('candidate', 'list', '--query', *ON_EXAMPLE, *SMALL),
        'filter list': ('filter', 'list'),
    },
)
def test_an_invalid_configuration_names_the_option(
    run, write, text, said, command
):
    path = write('bad.conf', text)
    assert sentence(run('--config-file', path, *command)).startswith(said)


def test_connection_options_are_checked_only_for_a_live_cloud(run, write):
    text = '[isolate_aggregates]\nauth_type = none\ntimeout = soon\n'
    named = (
        '--config-file',
        write('nova.conf', text),
        'candidate',
        'list',
        '--query',
        *SMALL,
    )
    assert sentence(run(*named)) == (
        'Configuration option [isolate_aggregates] timeout cannot be used: '
        "'soon' is not a number."
    )
    assert run(*named, *ON_EXAMPLE).code == 0


def test_an_invalid_configuration_sends_no_request(run, write, tmp_path):
    path = write('bad.conf', '[scheduler]\nmax_placement_results = many\n')
    result = run(
        *('--config-file', path, '--os-auth-type', 'none'),
        *('snapshot', 'save', '--output', str(tmp_path / 'saved.yaml')),
    )
    assert 'max_placement_results' in sentence(result)


def test_help_needs_no_valid_configuration(run, write):
    path = write('bad.conf', '[scheduler]\nmax_placement_results = many\n')
    result = run(
        '--config-file', path, 'candidate', 'list', '--query', '--help'
    )
    assert (result.code, result.err) == (0, '')
    assert result.out.startswith('usage: ')


@cases(
    ('content', 'said'),
    {
        'no file': (
            None,
            'The configuration {path} cannot be read: No such file or '
            'directory.',
        ),
        'no section': (
            b'auth_type = password\n',
            'The configuration {path} cannot be read: line 1: Section must '
            'be started before assignment.',
        ),
        'the line with the password, but not the password': (
            f'[isolate_aggregates]\n\npassword {PASSWORD}\n'.encode(),
            "The configuration {path} cannot be read: line 3: No ':' or '=' "
            'found in assignment.',
        ),
        'not text': (
            b'[scheduler]\n\xff\n',
            'The configuration {path} cannot be read: it is not UTF-8 text.',
        ),
    },
)
def test_an_unreadable_configuration_file_is_named(
    run, tmp_path, content, said
):
    path = tmp_path / 'nova.conf'
    if content is not None:
        path.write_bytes(content)
    result = run(
        '--config-file',
        str(path),
        'candidate',
        'list',
        '--query',
        *ON_EXAMPLE,
        *SMALL,
    )
    assert sentence(result) == said.format(path=path)


def test_a_configuration_directory_is_no_file(run, tmp_path):
    result = run('--config-file', str(tmp_path), 'filter', 'list')
    assert sentence(result) == (
        f'The configuration {tmp_path} cannot be read: Is a directory.'
    )


def test_a_file_is_no_configuration_directory(run, tmp_path):
    path = tmp_path / 'nova.conf'
    path.touch()
    result = run('--config-dir', str(path), 'filter', 'list')
    assert sentence(result) == (
        f'The configuration {path} cannot be read: Not a directory.'
    )


def test_a_log_file_that_cannot_be_written_is_named(run, tmp_path):
    path = tmp_path / 'nowhere' / 'log'
    result = run('--log-file', str(path), 'filter', 'list')
    assert sentence(result) == (
        f'Log file {path} cannot be written: No such file or directory.'
    )


def test_a_missing_configuration_directory_is_named(run):
    result = run('--config-dir', '/nowhere', 'filter', 'list')
    assert sentence(result) == (
        'The configuration /nowhere cannot be read: No such file or directory.'
    )


# Cloud files


@cases(
    ('settings', 'said'),
    {
        'neither true nor false': (
            'scheduler: {enable_isolated_aggregate_filtering: perhaps}',
            'settings.scheduler.enable_isolated_aggregate_filtering '
            "(line 2): cannot be 'perhaps': Unexpected boolean value "
            "'perhaps'.",
        ),
        'nothing, which is not "false"': (
            'scheduler: {enable_isolated_aggregate_filtering: }',
            'settings.scheduler.enable_isolated_aggregate_filtering (line 2): '
            'cannot be empty: it must be text, a number, true, false or a '
            'list of these.',
        ),
        'no number': (
            'scheduler: {max_placement_results: true}',
            'settings.scheduler.max_placement_results (line 2): cannot be '
            "True: 'True' is not an integer.",
        ),
        'too small a number': (
            'scheduler: {max_placement_results: 0}',
            'settings.scheduler.max_placement_results (line 2): cannot be 0: '
            'Should be greater than or equal to 1.',
        ),
        'a mapping for a list': (
            'isolate_aggregates: {request_filters: {isolate_tenants: true}}',
            'settings.isolate_aggregates.request_filters (line 2): cannot be '
            "{'isolate_tenants': True}: it must be text, a number, true, "
            'false or a list of these.',
        ),
        'an unknown setting': (
            'scheduler: {host_manager: x}',
            'settings.scheduler.host_manager (line 2): is not a setting of a '
            'cloud file; the settings are '
            'DEFAULT.default_availability_zone, ',
        ),
    },
)
def test_invalid_settings_of_a_cloud_file_are_named(
    run, write_cloud, settings, said
):
    path = write_cloud(f'settings: {{{settings}}}\n')
    result = run(
        'candidate', 'list', '--query', '--snapshot', str(path), *SMALL
    )
    assert sentence(result).startswith(f'Cloud file {path}: {said}')


def test_numbers_in_a_list_of_settings_become_text(run, write_cloud):
    path = write_cloud("""
        settings: {isolate_aggregates: {request_filters: [7]}}
    """)
    result = run(
        'candidate', 'list', '--query', '--snapshot', str(path), *SMALL
    )
    assert sentence(result).startswith('Request filter 7 is not installed; ')


def test_an_output_file_that_cannot_be_written_is_named(
    run, http, nova, glance, monkeypatch
):
    with_credentials(monkeypatch)
    nova.answer(http)
    glance.answer(http)
    http.get(
        f'{PLACEMENT}/resource_providers', json={'resource_providers': []}
    )
    http.get(
        f'{PLACEMENT}/allocation_candidates',
        json={'allocation_requests': [], 'provider_summaries': {}},
    )
    http.get(f'{PLACEMENT}/traits', json={'traits': []})
    http.get(f'{PLACEMENT}/resource_classes', json={'resource_classes': []})
    result = run(
        'snapshot', 'save', '--output', '/nowhere/saved.yaml', '--no-servers'
    )
    assert sentence(result) == (
        '/nowhere/saved.yaml cannot be written: No such file or directory.'
    )


# Credentials


def with_credentials(monkeypatch, **changes):
    for name, value in {**CREDENTIALS, **changes}.items():
        monkeypatch.setenv(f'OS_{name.upper()}', value)


NO_CREDENTIALS = (
    'There are no credentials for a cloud: give --os-cloud, OS_* variables or '
    '[isolate_aggregates] auth_type with its options'
)


@cases(
    ('command', 'instead'),
    {
        'one that can ask a file': (
            ('candidate', 'list', '--query', *SMALL),
            ', or use a cloud file with --snapshot',
        ),
        'one that changes it': (
            ('lock', 'create', 'win', '--trait', 'CUSTOM_WIN'),
            ', or use a cloud file with --snapshot',
        ),
        'one that compares it': (
            ('effect', 'show', '--to', str(EXAMPLE)),
            ', or use a cloud file with --snapshot',
        ),
        'one that can read a record': (
            ('ledger', '--since', '2026-10-01', '--lock', 'CUSTOM_WIN'),
            ', or read only the file of --file with --no-cloud',
        ),
        'one that cannot': (
            ('snapshot', 'save', '--output', 'saved.yaml'),
            '',
        ),
    },
)
def test_without_credentials_the_sources_are_named(run, command, instead):
    assert sentence(run(*command)) == f'{NO_CREDENTIALS}{instead}.'


@cases(
    ('options', 'said'),
    {
        'no such cloud': (('--os-cloud', 'mine'), 'Cloud mine was not found'),
        'no such auth type': (
            ('--os-auth-type', 'kerberos9'),
            'An invalid auth-type was specified: kerberos9',
        ),
        'not all it needs': (
            ('--os-auth-type', 'v3password'),
            'Auth plugin requires parameters which were not given: auth_url',
        ),
    },
)
def test_invalid_credentials_name_what_to_check(run, options, said):
    assert sentence(run(*options, 'candidate', 'list', '--query', *SMALL)) == (
        f'The credentials for the cloud cannot be used: {said}; check the '
        '--os-* options, the OS_* variables and clouds.yaml.'
    )


@cases(
    ('text', 'said'),
    {
        'no YAML': (
            'clouds: {mine: [}',
            'The file {path} cannot be read: line 1: invalid YAML; put values '
            'with special characters in quotes.',
        ),
        'no end of a password, which is not shown': (
            'clouds:\n  mine:\n    auth:\n      password: "pa55word',
            'The file {path} cannot be read: line 4: found unexpected end '
            'of stream.',
        ),
        'no clouds': (
            'clouds: [mine]',
            'The credentials for the cloud cannot be used: openstacksdk '
            "failed with AttributeError: 'list' object has no attribute "
            "'get'; check the --os-* options, the OS_* variables and "
            'clouds.yaml.',
        ),
        'hardly anything': (
            'mine',
            'The credentials for the cloud cannot be used: Configuration file '
            '{path} is empty or not a valid mapping; check the --os-* '
            'options, the OS_* variables and clouds.yaml.',
        ),
        'no such region': (
            'clouds: {mine: {regions: [north, south]}}',
            'The credentials for the cloud cannot be used: Region east is not '
            'a valid region name for cloud mine; check the --os-* options, '
            'the OS_* variables and clouds.yaml.',
        ),
    },
)
def test_an_unusable_clouds_yaml_is_an_error(
    run, write, monkeypatch, text, said
):
    path = write('clouds.yaml', text)
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', path)
    monkeypatch.setenv('OS_CLOUD', 'mine')
    result = run(
        '--os-region-name', 'east', 'candidate', 'list', '--query', *SMALL
    )
    assert sentence(result) == said.format(path=path)


@pytest.mark.parametrize('text', ['clouds: {mine: [}', 'clouds: [mine]'])
def test_a_question_to_a_cloud_file_needs_no_clouds_yaml_that_works(
    run, write, monkeypatch, text
):
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', write('clouds.yaml', text))
    monkeypatch.setenv('OS_CLOUD', 'mine')
    result = run('candidate', 'list', '--query', *ON_EXAMPLE, *SMALL)
    assert (result.code, result.err) == (0, '')


def test_a_malformed_clouds_yaml_is_named_without_a_cloud(
    run, write, monkeypatch
):
    path = write('clouds.yaml', 'clouds: {mine: [}')
    monkeypatch.setattr(loader, 'CONFIG_FILES', ['/nowhere.yaml', path])
    result = run('candidate', 'list', '--query', *SMALL)
    assert sentence(result).startswith(f'The file {path} cannot be read: ')


def test_only_the_first_valid_clouds_yaml_is_read(run, write, monkeypatch):
    good = write('good.yaml', 'clouds: {other: {}}')
    bad = write('bad.yaml', 'clouds: {mine: [}')
    monkeypatch.setattr(loader, 'CONFIG_FILES', [good, bad])
    result = run('--os-cloud', 'mine', 'candidate', 'list', '--query', *SMALL)
    assert 'Cloud mine was not found' in sentence(result)


def test_a_wrong_password_is_not_shown(run, keystone, monkeypatch):
    with_credentials(monkeypatch, password='not-the-pa55word')
    assert sentence(run('candidate', 'list', '--query', *SMALL)) == (
        'Keystone at http://keystone.test/v3 does not accept the credentials: '
        'The request you have made requires authentication; check the user, '
        'the password, the project and their domains.'
    )


# A live cloud


@pytest.fixture
def live(run, http, nova, glance, monkeypatch):
    """Nova with a flavor and Glance without an image."""
    with_credentials(monkeypatch)
    monkeypatch.setattr('keystoneauth1.session.time.sleep', lambda _: None)
    nova.flavors = [Flavor('m1.small', '1', vcpus=1)]
    nova.aggregates = [Aggregate('uuid-1', 'gpu', {'trait:X': 'required'})]
    nova.answer(http)
    glance.answer(http)
    return nova


REFUSED = requests.ConnectionError('Max retries exceeded, and so on')
REFUSED.__cause__ = ConnectionRefusedError(111, 'Connection refused')


@cases(
    ('arguments', 'said'),
    {
        'no such flavor': (
            ('--flavor', 'huge'),
            "There is no flavor with the name or id 'huge' in Nova at "
            f'{NOVA}.',
        ),
        'no such image': (
            (*SMALL, '--image', 'beos'),
            "There is no image with the name or id 'beos' in Glance at "
            f'{GLANCE}.',
        ),
        'no such host': (
            (*SMALL, '--host', 'nowhere'),
            'There is no compute host named nowhere.',
        ),
    },
)
def test_a_missing_live_resource_is_named_with_its_endpoint(
    run, live, arguments, said
):
    assert sentence(run('candidate', 'list', '--query', *arguments)) == said


@cases(
    ('answer', 'said'),
    {
        'it is down': (
            {'exc': REFUSED},
            'cannot be reached: Connection refused; check that it is running '
            'and that this is its address.',
        ),
        'it is busy for good': (
            {'status_code': 503, 'headers': HTML, 'text': '<h1>Busy</h1>'},
            'answered GET /allocation_candidates?limit=1000&resources=VCPU%3A1'
            '&root_required=%21COMPUTE_STATUS_DISABLED with 503: no reason '
            'was given.',
        ),
        'it is too old': (
            {
                'status_code': 406,
                'json': {'errors': [{'max_version': '1.30'}]},
            },
            'offers microversions up to 1.30; requiring traits of the root '
            'provider needs 1.35 (Train).',
        ),
        'it does not let us': (
            {'status_code': 403, 'text': 'You are nobody.'},
            'denied GET /allocation_candidates?limit=1000&resources=VCPU%3A1'
            '&root_required=%21COMPUTE_STATUS_DISABLED (403): You are nobody; '
            'use credentials with the admin or service role.',
        ),
    },
)
def test_an_unreachable_placement_is_one_sentence_for_all_retries(
    run, live, http, write, answer, said
):
    http.get(f'{PLACEMENT}/allocation_candidates', **answer)
    assert sentence(run('candidate', 'list', *SMALL)) == (
        f'Placement at {PLACEMENT} {said}'
    )


def test_a_nova_that_is_down_is_one_sentence_for_all_tries(run, live, http):
    http.get(f'{NOVA}/flavors/detail', exc=REFUSED)
    assert sentence(run('candidate', 'list', '--query', *SMALL)) == (
        f'Nova at {NOVA} cannot be reached: Connection refused; check that '
        'it is running and that this is its address.'
    )
    tries = [r for r in http.request_history if r.path.endswith('/detail')]
    assert len(tries) == 4


def test_an_unknown_aggregate_source_is_refused_with_those_installed(
    run, live, write
):
    path = write('x.conf', '[isolate_aggregates]\naggregate_source = ldap\n')
    result = run('--config-file', path, 'candidate', 'list', '--query', *SMALL)
    assert sentence(result).startswith(
        'Configuration option [isolate_aggregates] aggregate_source names '
        'ldap, which is not installed; choose from file, '
    )


def test_an_interruption_shows_no_traceback(run, live, http):
    http.get(f'{NOVA}/os-aggregates', exc=KeyboardInterrupt)
    result = run('candidate', 'list', '--query', *SMALL)
    assert result.code == 130
    assert (result.out, result.err) == ('', '')


@cases(
    ('options', 'shown'),
    {
        'not by default': ((), False),
        'with --debug': (('--debug',), True),
    },
)
def test_warnings_of_libraries_are_not_shown_to_users(
    run, live, http, monkeypatch, options, shown
):
    def answer(_request, _context):
        warnings.warn('something is not as it was', UserWarning, stacklevel=1)
        return {'aggregates': []}

    monkeypatch.setattr(sys, 'warnoptions', [])
    http.get(f'{NOVA}/os-aggregates', json=answer)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        result = run(*options, 'candidate', 'list', '--query', *SMALL)
    assert result.code == 0
    messages = [str(warning.message) for warning in caught]
    assert ('something is not as it was' in messages) == shown


def test_debug_shows_the_traceback(run, live):
    result = run('--debug', 'candidate', 'list', '--query', '--flavor', 'huge')
    assert result.code == 1
    assert 'Traceback (most recent call last)' in result.err


@cases(
    ('password', 'where'),
    {
        'an alias': ('*pa55word', 'line 4: '),
        'a tag': ('!pa55word', 'line 4: '),
        'a handle of a tag': ('!pa55word!x y', 'line 4: '),
        'a number': ('!!int pa55word', ''),
        'neither true nor false': ('!!bool pa55word', ''),
    },
)
@pytest.mark.parametrize(
    'variable', ['OS_CLIENT_CONFIG_FILE', 'OS_CLIENT_SECURE_FILE']
)
def test_a_password_without_quotes_is_not_shown(
    run, write, monkeypatch, variable, password, where
):
    text = 'clouds:\n  mine:\n    auth:\n      password: '
    monkeypatch.setenv(
        'OS_CLIENT_CONFIG_FILE', write('clouds.yaml', f'{text}fine')
    )
    path = write('private.yaml', f'{text}{password}')
    monkeypatch.setenv(variable, path)
    monkeypatch.setenv('OS_CLOUD', 'mine')
    assert sentence(run('candidate', 'list', '--query', *SMALL)) == (
        f'The file {path} cannot be read: {where}invalid YAML; put values '
        'with special characters in quotes.'
    )


@pytest.mark.parametrize(
    'entry',
    metadata.entry_points(group='isolate_aggregates.cli'),
    ids=lambda entry: entry.name,
)
def test_no_option_of_a_command_is_one_of_the_program(entry):
    """The program would take it, and the command keep its default."""
    program = app.IsolateAggregatesApp()
    command = entry.load()(program, None, cmd_name=entry.name)
    shared = (
        program.parser._option_string_actions.keys()
        & command.get_parser('x')._option_string_actions.keys()
    )
    assert not {option for option in shared if option.startswith('--')} - {
        '--help'
    }
