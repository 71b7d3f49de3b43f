# SPDX-License-Identifier: Apache-2.0
"""The errors of commands."""


def sentence(result):
    """Return the one sentence that a run has failed with."""
    refused = ('Request refused: ', 'nova-api refuses ')
    assert result.code == (4 if result.err.startswith(refused) else 1)
    assert result.out == ''
    assert result.err.endswith('.\n')
    assert result.err.count('\n') == 1
    return str(result.err).rstrip('\n')
