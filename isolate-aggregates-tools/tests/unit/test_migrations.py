# SPDX-License-Identifier: Apache-2.0
"""What Nova says of a failed migration, in a sentence of ours."""

import types

from novaclient import api_versions

from isolate_aggregates_tools.compute import migrations


def test_the_sentence_of_nova_can_be_continued():
    answers = {
        '/servers/s1/os-instance-actions': {
            'instanceActions': [{'request_id': 'req-2'}, {'request_id': 'r1'}]
        },
        '/servers/s1/os-instance-actions/req-2': {
            'instanceAction': {
                'events': [
                    {'details': None},
                    # As exceptions of Nova end.
                    {'details': 'No valid host was found. '},
                ]
            }
        },
    }
    nova = types.SimpleNamespace(
        newest=api_versions.APIVersion('2.100'),
        direct=types.SimpleNamespace(
            get=lambda path, version: answers[path],
            parsed=lambda path, parse, document: parse(document),
        ),
    )
    assert migrations.failure(nova, 's1') == 'No valid host was found'
