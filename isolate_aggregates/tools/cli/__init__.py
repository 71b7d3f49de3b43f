# SPDX-License-Identifier: Apache-2.0
"""The program ``isolate-aggregates``; ``tools/commands`` has its commands."""

# The exit status that shells expect after SIGINT.
INTERRUPTED = 130


def main() -> int:
    """Run the program; SIGINT during the imports shows no traceback."""
    try:
        from isolate_aggregates.tools.cli import app

        return app.main()
    except KeyboardInterrupt:
        return INTERRUPTED
