# SPDX-License-Identifier: Apache-2.0
"""Where the tools of operators are, and the cloud that they change."""

import os
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = pathlib.Path(
    os.environ.get('OPERATOR_VENV') or ROOT / '.venv-operator', 'bin'
).resolve()

# Programs, and the cloud that they change.
EXAMPLES = pathlib.Path(__file__).with_name('programs')
CLOUD = EXAMPLES / 'cloud.yaml'
