# SPDX-License-Identifier: Apache-2.0
"""The commands of ``isolate-aggregates``."""

# The exit status that shells expect after SIGINT.
INTERRUPTED = 130


def main() -> int:
    """Run the program; SIGINT during the imports shows no traceback."""
    try:
        from isolate_aggregates.cli import app

        return app.main()
    except KeyboardInterrupt:
        return INTERRUPTED
