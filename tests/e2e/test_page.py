# SPDX-License-Identifier: Apache-2.0
"""The commands on the page "End to end" work with this cloud."""

import pages
import runners
import terminal

PAGE = 'contributor/end-to-end.rst'


def test_the_commands_of_the_page_work_as_shown(plane, admin, tmp_path):
    # The clone, in which "make cloud" was typed.
    (tmp_path / '.cloud').symlink_to(plane.settings.state)
    with terminal.Terminal(tmp_path, {}, {}) as typing:
        try:
            for command in runners.commands_of(PAGE, runners.AS_A_WHOLE[PAGE]):
                typed = typing.type(command.text)
                assert typed.code == 0, typed.output
                if command.output:
                    assert pages.agrees(command.output, typed.output)
        finally:
            admin.run('server', 'delete', '--wait', 'first')


def test_the_story_of_the_page_is_true(cloud, lock):
    [story] = [
        block.text
        for block in pages.blocks(pages.path(PAGE))
        if block.language == 'python'
    ]
    names = {}
    exec(story, names)
    names['test_a_locked_host_takes_only_servers_with_the_key'](cloud, lock)
