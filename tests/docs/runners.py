# SPDX-License-Identifier: Apache-2.0
"""Lists which test runs each command of the documentation.

``test_every_command.py`` fails for a command that no test runs, and for a page
that is not listed here.
"""

import dataclasses
import re

import pages

# Commands that ask a file, or nothing: on any page.
ON_FILES = 'tests/docs/test_on_files.py'

_LIVE = 'tests/nova_functional/test_live_pages.py'
# Commands that ask a cloud: page by page, on a real Nova and Placement.
ON_NOVA = {
    'README.rst': _LIVE,
    'admin/audit.rst': _LIVE,
    'admin/blazar.rst': _LIVE,
    'admin/day-two.rst': 'tests/nova_functional/test_day_two_page.py',
    'admin/effect.rst': _LIVE,
    'admin/limits.rst': _LIVE,
    'admin/ledger.rst': 'tests/nova_functional/test_ledger_page.py',
    'admin/metrics.rst': _LIVE,
    'admin/no-valid-host.rst': _LIVE,
    'admin/nova-scheduler.rst': _LIVE,
    'admin/report.rst': _LIVE,
    'admin/reservations.rst': 'tests/nova_functional/test_reservation_page.py',
    'admin/restore.rst': 'tests/nova_functional/test_restore_page.py',
    'admin/security.rst': _LIVE,
    'admin/snapshots.rst': _LIVE,
    'admin/sync.rst': _LIVE,
    'admin/uninstall.rst': 'tests/nova_functional/test_uninstall_page.py',
    'admin/upgrade.rst': _LIVE,
    'cli/openstack.rst': _LIVE,
    'cli/status.rst': _LIVE,
    'install/container.rst': _LIVE,
    'install/index.rst': _LIVE,
    'install/kolla-ansible.rst': _LIVE,
    'install/kubernetes.rst': _LIVE,
    'install/openstack-ansible.rst': _LIVE,
    'user/tutorial.rst': _LIVE,
}

# Pages with a test that does all they say, but for what is in BY_OTHERS.
AS_A_WHOLE = {
    'admin/compared.rst': 'tests/nova_functional/test_compared_page.py',
    'contributor/end-to-end.rst': 'tests/e2e/test_page.py',
    'contributor/releasing.rst': 'tests/release/test_releasing_page.py',
    'contributor/writing-a-filter.rst': 'tests/clone/test_writing_a_filter.py',
    'user/real-nova.rst': 'tests/e2e/test_real_nova_page.py',
}

# What is neither of ours nor of a cloud, by how it begins.
BY_OTHERS = {
    r'make ': 'tests/docs/test_tools.py',
    r'.*tools/outputs\.py ': (
        'isolate-aggregates-tools/tests/functional/'
        'test_commands_on_examples.py'
    ),
    r'pip install ': 'tests/docs/test_tools.py',
    r'(python3 -m venv|\. \.venv)': 'tests/docs/test_tools.py',
    r'sudo apt-get install ': 'tests/docs/test_tools.py',
    r'systemctl ': 'tests/docs/test_tools.py',
    r'ansible-playbook --inventory hosts ': (
        'tests/rehearsals/test_playbook_of_deployment.py'
    ),
    r'isolate-aggregates-manage ': 'tests/nova/test_manage.py',
    r'(openstack|isolate-aggregates) complete ': 'tests/docs/test_tools.py',
    r'isolate-aggregates .* \\\n +relocation create ': (
        'tests/nova_functional/test_room_live.py'
    ),
    r'isolate-aggregates decision list --shadow \\\n +/var/log/': (
        'tests/nova_functional/test_decision_commands.py'
    ),
    r'journalctl (.|\n)*LOGGER_NAME': 'tests/docs/test_routed_records.py',
    r'OS_CLOUD=mycloud python import_from_blazar\.py ': (
        'isolate-aggregates-reservations/tests/blazar/test_import.py'
    ),
    r'git apply .*/upstream/nova/': 'tests/nova/test_upstream_patch.py',
    r'git apply .*/upstream/placement/': 'tests/databases/test_claims.py',
}

# What cannot be run by a test, by how it begins, and why.
NOT_RUN = {
    r'kolla-(build|ansible) ': 'it needs a deployment of kolla-ansible',
    r'tox -e nova3': 'it takes an hour; the matrix is its result',
    r'tox -e py3': 'it needs four Pythons; the matrix is its result',
    r'docker build ': 'it needs images of kolla',
    r'podman build ': 'it needs podman and a base image',
    r'pip download ': 'it fetches what an image needs, which podman builds',
    r'kubectl .* (apply|create|patch) ': 'it needs a cluster of Kubernetes',
    r'helm ': 'it needs a deployment of openstack-helm',
    r'(ansible-playbook|/opt/genestack/bin/install-nova) ?': (
        'it needs a deployment of Atmosphere or Genestack'
    ),
    r'openstack-ansible ': 'it needs a deployment of openstack-ansible',
}

# Who gives it asks the cloud that runs with it.
NOVA_CONF = '/etc/nova/nova.conf'
# A program of ours in a container or another environment.
_ELSEWHERE = re.compile(
    r'(?:docker exec|kubectl .* exec|podman run|/openstack/venvs/)'
    r'(?:.|\n)*?(isolate-aggregates(?:-status)?)(?::\S+)?(?= )'
)
_CLIENT = r'(export OS_|\w+=\$\(openstack |openstack |nova-manage )'


@dataclasses.dataclass(frozen=True)
class Shown:
    """A command on a page.

    :param page: The name of the page.
    :param command: The command.
    :param runner: The file that runs it, or the reason why no test does; None
        if it is not listed.
    """

    page: str
    command: pages.Command
    runner: str | None


def is_ours(words):
    """Return whether a command is one of ours, in either program."""
    return words[0] == 'isolate-aggregates' or (
        words[0] == 'openstack' and 'isolation' in words
    )


def here(text):
    """Return a command without what runs it in a container."""
    return _ELSEWHERE.sub(r'\1', text)


def shown(page):
    """Yield the commands on a page, in order."""
    name = pages.name(page)
    # Cloud files that come from a cloud.
    saved = set()
    for block in pages.blocks(page):
        for command in block.typed:
            yield Shown(name, command, _runner(name, command, saved))
            if {'snapshot', 'save'} <= {*command.words}:
                saved.add(command.words[-1])


def played(page, folder):
    """Yield the commands on a page that ask files, once the files are there.

    :param folder: Where the files that the page shows are written.
    """
    commands = shown(page)
    for block in pages.blocks(page):
        if block.caption:
            (folder / block.caption).write_text(block.text)
        for _ in block.typed:
            found = next(commands)
            if found.runner == ON_FILES:
                yield found.command


def _runner(name, command, saved):
    for beginning, runner in (NOT_RUN | BY_OTHERS).items():
        if re.match(beginning, command.text):
            return runner
    if name in AS_A_WHOLE:
        return AS_A_WHOLE[name]
    if _ELSEWHERE.match(command.text):
        return ON_NOVA.get(name)
    words = command.words
    if is_ours(words) and not {'--os-cloud', NOVA_CONF} & set(words):
        on_file = '--snapshot' in words and not saved & set(words)
        if on_file or (command.output and not saved & set(words)):
            return ON_FILES
    if is_ours(words) or re.match(_CLIENT, command.text):
        return ON_NOVA.get(name)
    if words[0] == 'isolate-aggregates-status':
        return ON_NOVA.get(name)
    return None


def commands_of(name, runner):
    """Return the commands of a page that a test runs.

    :param name: The name of the page.
    :param runner: The file that runs them.
    """
    found = [
        each.command
        for each in shown(pages.path(name))
        if each.runner == runner
    ]
    assert found, f'{name} has nothing to run for {runner}'
    return found
