# SPDX-License-Identifier: Apache-2.0
"""The published schema of the records of decisions."""

import json
import pathlib

import isolate_aggregates

SCHEMA = json.loads(
    (
        pathlib.Path(isolate_aggregates.__file__).parent
        / 'decision.schema.json'
    ).read_text('utf-8')
)
