# SPDX-License-Identifier: Apache-2.0
"""The program ``isolate-aggregates``, without any of its commands."""

import gc

# The exit status that shells expect after SIGINT.
INTERRUPTED = 130


def main() -> int:
    """Run the program; SIGINT during the imports shows no traceback."""
    # A large cloud has millions of objects, of which hardly any is garbage:
    # with Python's threshold of 700, to look for it takes a fifth of the time,
    # and with 100,000 a tenth.
    gc.set_threshold(1_000_000)
    try:
        from isolate_aggregates_tools.cli import app

        return app.main()
    except KeyboardInterrupt:
        return INTERRUPTED
