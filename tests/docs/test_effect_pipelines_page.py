# SPDX-License-Identifier: Apache-2.0
"""The pipelines on the page about merge requests, run in a real shell.

Terraform, curl and our own command are programs that note how they were run.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pages
import pytest
import yaml

PAGE = pages.SOURCE / 'admin' / 'effect-pipelines.rst'
BLOCKS = {block.caption: block.text for block in pages.blocks(PAGE)}

# Each program notes its arguments; terraform prints a plan, curl sends a note.
PROGRAM = """#!/bin/sh
echo "$(basename $0) $*" >> calls
case "$(basename $0) $*" in
terraform*" show "*) echo '{"format_version": "1.2"}' ;;
isolate-aggregates*" effect "* | isolate-aggregates*" rehearse "*)
    echo 'server /merge would be out of place'
    exit $STATUS ;;
isolate-aggregates*" test "*)
    echo '{"failed": 1}'
    exit $STATUS ;;
gh*" --body-file note.md") cp note.md sent.md ;;
*" body@note.md "*) cp note.md sent.md ;;
esac
"""


@pytest.fixture
def run(tmp_path):
    """Run a script where the programs are ours; return its exit status."""
    programs = tmp_path / 'bin'
    programs.mkdir()
    for name in (
        'terraform',
        'terraform1.9.8',
        'isolate-aggregates',
        'curl',
        'gh',
    ):
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)

    def run_script(script, status, shell=('bash', '-eo', 'pipefail'), **more):
        environment = {
            **os.environ,
            'PATH': f'{programs}:{os.environ["PATH"]}',
            'STATUS': str(status),
            **more,
        }
        done = subprocess.run(
            [*shell, '-c', script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ''
        return done.returncode

    return run_script


def gitlab_script(name):
    """Return the pipeline for GitLab, and what a job of it runs."""
    pipeline = yaml.safe_load(BLOCKS['.gitlab-ci.yml'])
    job = pipeline[name]
    before = pipeline[job['extends']]['before_script']
    return pipeline, '\n'.join((*before, *job['script']))


def github_steps(name):
    """Return the steps of a workflow for GitHub by what they are about."""
    workflow = yaml.safe_load(BLOCKS[f'.github/workflows/{name}.yml'])
    return workflow['jobs'][name]['steps']


def calls(folder):
    return (folder / 'calls').read_text()


@pytest.mark.parametrize(
    ('status', 'result'), [(0, 0), (1, 1), (2, 2), (5, 5), (6, 0)]
)
def test_the_job_of_gitlab_comments_and_ends_as_the_effect(
    run, tmp_path, status, result
):
    pipeline, script = gitlab_script('effect')
    variables = {
        'CI_API_V4_URL': 'https://gitlab/api/v4',
        'CI_PROJECT_ID': '3',
        'CI_MERGE_REQUEST_IID': '8',
        'CI_JOB_TOKEN': 'job-token',
        'EFFECT_TOKEN': 'effect-token',
        'CLOUD': 'https://gitlab/cloud.yaml',
    }
    assert run(script, status, **variables) == result
    assert (
        'isolate-aggregates effect show --snapshot cloud.yaml '
        '--terraform-plan plan.json --detailed-exitcode\n'
    ) in calls(tmp_path)
    assert (
        'PRIVATE-TOKEN: effect-token --data-urlencode body@note.md '
        'https://gitlab/api/v4/projects/3/merge_requests/8/notes\n'
    ) in calls(tmp_path)
    # No line begins with a quick action.
    assert (tmp_path / 'sent.md').read_text() == (
        'Effect on the cloud\n\n    server /merge would be out of place\n'
    )
    assert pipeline['effect']['allow_failure'] == {'exit_codes': 5}


def test_the_scheduled_job_of_gitlab_uploads_what_the_other_one_reads(
    run, tmp_path
):
    pipeline = yaml.safe_load(BLOCKS['.gitlab-ci.yml'])
    script = '\n'.join(pipeline['snapshot']['script'])
    assert run(script, 0, CLOUD='the-url', CI_JOB_TOKEN='job-token') == 0
    assert (
        calls(tmp_path)
        .splitlines()[-1]
        .endswith('--upload-file cloud.yaml the-url')
    )
    assert '"$CLOUD"' in pipeline['.plan']['before_script'][0]


@pytest.mark.parametrize('status', [0, 1, 4])
def test_the_job_of_gitlab_ends_as_the_test_and_keeps_its_report(
    run, tmp_path, status
):
    pipeline, script = gitlab_script('expectations')
    variables = {'CI_JOB_TOKEN': 'job-token', 'CLOUD': 'the-url'}
    assert run(script, status, **variables) == status
    assert calls(tmp_path).endswith(
        'isolate-aggregates test expectations.yaml --snapshot cloud.yaml '
        '--terraform-plan plan.json --output junit.xml -f json\n'
    )
    artifacts = pipeline['expectations']['artifacts']
    [report] = artifacts['paths']
    assert (tmp_path / report).read_text() == '{"failed": 1}\n'
    assert artifacts['reports']['junit'] == 'junit.xml'
    assert artifacts['when'] == 'always'


@pytest.mark.parametrize(
    ('status', 'result'), [(0, 0), (1, 1), (2, 2), (5, 5), (6, 0)]
)
def test_the_workflow_of_github_comments_and_ends_as_the_effect(
    run, tmp_path, status, result
):
    steps = {s.get('name'): s for s in github_steps('isolation')}
    script = steps['effect']['run']
    assert run(script, status, ['bash', '-e'], PULL_REQUEST='the-url') == (
        result
    )
    assert (
        'isolate-aggregates effect show --snapshot cloud.yaml '
        '--terraform-plan plan.json --detailed-exitcode\n'
        'gh pr comment the-url --body-file note.md\n'
    ) in calls(tmp_path)
    # No line is anything but text.
    assert (tmp_path / 'sent.md').read_text() == (
        'Effect on the cloud\n\n    server /merge would be out of place\n'
    )


@pytest.mark.parametrize('status', [0, 1, 4])
def test_the_workflow_of_github_ends_as_the_test(run, tmp_path, status):
    steps = {s.get('name'): s for s in github_steps('isolation')}
    script = steps['expectations']['run']
    assert run(script, status, ['bash', '-e']) == status
    assert (tmp_path / 'report.json').read_text() == '{"failed": 1}\n'
    *_, upload = github_steps('isolation')
    assert upload['with']['path'].split() == ['junit.xml', 'report.json']


def test_the_workflows_of_github_read_what_the_first_one_uploads(
    run, tmp_path
):
    scripts = [s['run'] for s in github_steps('snapshot') if 'run' in s]
    assert run('\n'.join(scripts), 0, ['bash', '-e']) == 0
    assert 'snapshot save --output cloud.yaml\n' in calls(tmp_path)
    assert 'gh release upload cloud cloud.yaml --clobber\n' in (
        calls(tmp_path)
    )
    [read] = [
        s['run']
        for s in github_steps('isolation')
        if 'gh release download' in s.get('run', '')
    ]
    assert run(read, 0, ['bash', '-e']) == 0
    assert 'gh release download cloud --pattern cloud.yaml\n' in (
        calls(tmp_path)
    )
    assert (tmp_path / 'plan.json').read_text().startswith('{"format_')


@pytest.mark.parametrize('name', ['snapshot', 'isolation'])
def test_no_text_of_a_pull_request_becomes_part_of_a_script(name):
    for step in github_steps(name):
        assert '${{' not in step.get('run', '')


@pytest.mark.parametrize(
    ('status', 'works'),
    [(0, True), (1, False), (2, False), (5, False), (6, True)],
)
def test_the_workflow_of_atlantis_fails_if_servers_would_be_out_of_place(
    run, tmp_path, status, works
):
    config = yaml.safe_load(BLOCKS['repos.yaml'])
    [*_, show, effect] = config['workflows'][config['repos'][0]['workflow']][
        'plan'
    ]['steps']
    more = {
        'ATLANTIS_TERRAFORM_VERSION': '1.9.8',
        'PLANFILE': 'a plan',
        'SHOWFILE': 'a show.json',
    }
    assert run(show['run'], status, shell=['sh'], **more) == 0
    assert (tmp_path / 'a show.json').read_text().startswith('{"format_')
    assert (run(effect['run'], status, shell=['sh'], **more) == 0) == works
    assert '--terraform-plan a show.json' in calls(tmp_path)


@pytest.mark.parametrize('status', [1, 2, 5, 8, 9])
def test_the_script_for_any_tool_ends_as_the_rehearsal(run, tmp_path, status):
    assert run(BLOCKS['rehearsal.sh'], status, shell=['sh']) == status
    assert calls(tmp_path) == (
        'isolate-aggregates rehearse --snapshot cloud.yaml --as-cloud mycloud '
        '--detailed-exitcode --output after.yaml -- ansible-playbook '
        'site.yml\n'
    )


@pytest.mark.parametrize('status', [0, 6])
def test_the_script_for_any_tool_tests_the_cloud_afterwards(
    run, tmp_path, status
):
    """The program has the same status for the test."""
    assert run(BLOCKS['rehearsal.sh'], status, shell=['sh']) == status
    assert calls(tmp_path).endswith(
        'isolate-aggregates test expectations.yaml --snapshot after.yaml\n'
    )


# With bash and with sh.
QUICK = ('GitLab', 'Atlantis')
# What the recipes run, in the shell of each.
RECIPES = {
    'GitLab': ('bash -eo pipefail', lambda: gitlab_script('effect')[1]),
    'GitHub': (
        'bash -e',
        lambda: {s.get('name'): s for s in github_steps('isolation')}[
            'effect'
        ]['run'],
    ),
    'Atlantis': (
        'sh',
        lambda: yaml.safe_load(BLOCKS['repos.yaml'])['workflows']['openstack'][
            'plan'
        ]['steps'][-1]['run'].replace('/var/lib/atlantis/', ''),
    ),
}

# Each puts a mistake into a recipe.
MISTAKES = {
    'command': ('isolate-aggregates effect show', 'isolate-aggregates efect'),
    'option': ('--detailed-exitcode', '--detailed-exitcode --detaled'),
    'option without value': ('--snapshot cloud.yaml', '--snapshot'),
    'name of an option': ('--snapshot', '--snapshto'),
    'program': ('isolate-aggregates effect show', 'isolate-agregates effect'),
    'configuration': (
        'isolate-aggregates effect show',
        'isolate-aggregates --config-file gone.conf effect show',
    ),
    'option before': (
        'isolate-aggregates effect show',
        'isolate-aggregates --detaled effect show',
    ),
    'empty file name': ('cloud.yaml', "''"),
    'file that is not there': ('cloud.yaml', 'clod.yaml'),
    'empty variable': ('--snapshot cloud.yaml', '--snapshot $EMPTY'),
    'no change': (r'--terraform-plan\s+\S+', ''),
    'empty plan': (r'--terraform-plan\s+\S+', "--terraform-plan ''"),
    'a key that is not there': (
        '--detailed-exitcode',
        '--detailed-exitcode --unset rack-7 colour',
    ),
}


@pytest.fixture
def run_recipe(run, tmp_path):
    """Run a recipe with the real program; return its exit status."""
    program = pathlib.Path(sys.executable).parent / 'isolate-aggregates'
    stub = tmp_path / 'bin' / 'isolate-aggregates'
    stub.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
    shutil.copy(
        pages.ROOT / 'examples' / 'licensed-rack.yaml', tmp_path / 'cloud.yaml'
    )
    before, after = (
        {'name': 'rack-7', 'id': 'rack-7', 'metadata': m}
        for m in ({}, {'colour2': 'blue'})
    )
    change = {'actions': ['update'], 'before': before, 'after': after}
    changed = {
        **{'address': 'openstack_compute_aggregate_v2.x', 'mode': 'managed'},
        **{'type': 'openstack_compute_aggregate_v2', 'change': change},
    }
    (tmp_path / 'planned.json').write_text(
        json.dumps({'format_version': '1.2', 'resource_changes': [changed]})
    )

    def run_it(name, mistake=None):
        shell, script = RECIPES[name]
        text = script()
        # A plan that needs no Terraform.
        text = re.sub(
            r'--terraform-plan\s+\S+', '--terraform-plan planned.json', text
        )
        text = re.sub(r'terraform (init|plan|show) .*', 'true', text)
        if mistake:
            old, new = MISTAKES[mistake]
            text, count = re.subn(old, new, text)
            assert count
        done = subprocess.run(
            [*shell.split(), '-c', text],
            cwd=tmp_path,
            env={
                **os.environ,
                'PATH': f'{stub.parent}:{os.environ["PATH"]}',
                'STATUS': '0',
                'CLOUD': 'the-url',
                'CI_JOB_TOKEN': 'the-token',
                'CI_API_V4_URL': 'https://gitlab/api/v4',
                'CI_PROJECT_ID': '3',
                'CI_MERGE_REQUEST_IID': '8',
                'EFFECT_TOKEN': 'effect-token',
                'PULL_REQUEST': 'the-url',
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run_it


@pytest.mark.parametrize(
    'name',
    [
        # The others call the program in the same way.
        pytest.param(each, marks=() if each in QUICK else pytest.mark.slow)
        for each in RECIPES
    ],
)
def test_a_recipe_is_green_for_a_change_and_red_for_each_mistake(
    run_recipe, name
):
    status, output = run_recipe(name)
    assert status == 0, output
    green = [
        mistake for mistake in MISTAKES if run_recipe(name, mistake)[0] == 0
    ]
    assert green == []
