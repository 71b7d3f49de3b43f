# SPDX-License-Identifier: Apache-2.0
"""Bring the control plane up or down: ``python -m control_plane up``."""

import argparse
import sys

from control_plane.plane import Plane
from control_plane.settings import Settings


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(prog='control_plane')
    parser.add_argument('command', choices=('up', 'down'))
    command = parser.parse_args().command
    try:
        plane = Plane(Settings.from_environment())
    except RuntimeError as exc:
        print(exc, file=sys.stderr)
        return 1
    try:
        getattr(plane, command)()
    except RuntimeError as exc:
        print(exc, file=sys.stderr)
        if plane.settings.logs.exists():
            print(f'Logs are in {plane.settings.logs}', file=sys.stderr)
        return 1
    if command == 'up':
        print(
            f'The cloud is up. To be its administrator:\n\n'
            f'  . {plane.settings.openrc}\n'
        )
    return 0


if __name__ == '__main__':
    sys.exit(main())
