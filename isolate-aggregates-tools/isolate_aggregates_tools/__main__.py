# SPDX-License-Identifier: Apache-2.0
"""``python -m isolate_aggregates_tools`` is ``isolate-aggregates``."""

import sys

from isolate_aggregates_tools.cli import main

if __name__ == '__main__':
    # cliff shows it as the name of the program.
    sys.argv[0] = 'isolate-aggregates'
    sys.exit(main())
