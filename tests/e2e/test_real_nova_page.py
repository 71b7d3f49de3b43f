# SPDX-License-Identifier: Apache-2.0
"""The commands on the page "A real cloud" have the shown output."""

import pages
import pytest
import runners
import terminal

PAGE = 'user/real-nova.rst'
TRAIT = 'CUSTOM_LICENSED_WINDOWS'
AGGREGATE = 'win-hosts'
IMAGES = ('debian-12', 'windows-2022')
SERVERS = ('old-debian', 'debian', 'windows')


@pytest.fixture
def tidy(cloud, admin):
    """A cloud without the objects of the page, before and after."""
    tidy_up(cloud, admin)
    yield
    tidy_up(cloud, admin)


def test_the_commands_of_the_page_work_as_shown(plane, tidy, tmp_path):
    # The clone, in which "make cloud" was typed.
    (tmp_path / '.cloud').symlink_to(plane.settings.state)
    (tmp_path / 'LICENSE').symlink_to(pages.ROOT / 'LICENSE')
    wrong = []
    with terminal.Terminal(tmp_path, {}, {}) as typing:
        for command in runners.commands_of(PAGE, runners.AS_A_WHOLE[PAGE]):
            typed = typing.type(command.text)
            shown = not command.output or pages.agrees(
                command.output, typed.output
            )
            if not shown or typed.code not in usual(command):
                wrong.append(f'$ {command.text}\n{typed.output}({typed.code})')
    assert wrong == [], '\n'.join(wrong)


def usual(command):
    """Return how a command may end if nothing is wrong with it."""
    return (0, 4) if 'audit' in command.words else (0,)


def tidy_up(cloud, admin):
    """Delete the objects that the page creates."""
    for server in cloud.admin.servers.list():
        if server.name in SERVERS:
            cloud.delete(server)
    for aggregate in cloud.admin.aggregates.list():
        if aggregate.name == AGGREGATE:
            admin('isolation', 'lock', 'delete', AGGREGATE)
            for host in aggregate.hosts:
                aggregate.remove_host(host)
            aggregate.delete()
    for image in cloud.sdk.image.images():
        if image.name in IMAGES:
            cloud.sdk.image.delete_image(image)
    # Other tests may need it, and it may not exist.
    version = ('--os-placement-api-version', '1.6')
    admin.run(*version, 'trait', 'delete', TRAIT)
