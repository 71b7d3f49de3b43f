# SPDX-License-Identifier: Apache-2.0
"""The commands of ``isolate-aggregates``."""

# What a shell expects of a program that was interrupted.
INTERRUPTED = 130


def main() -> int:
    """Run the program; an interruption while it is imported shows nothing."""
    try:
        from isolate_aggregates.cli import app

        return app.main()
    except KeyboardInterrupt:
        return INTERRUPTED
