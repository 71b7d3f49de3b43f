# SPDX-License-Identifier: Apache-2.0
"""Runs the program over a real Nova and a real Placement."""

import contextlib
import dataclasses
import io
import json
import logging
import pathlib
import tempfile

from agreement import agreed
from base import ISOLATE, LiveTest
from glance_api import URL as GLANCE
from glance_api import GlanceApi

from isolate_aggregates_tools.cli import app


@dataclasses.dataclass(frozen=True)
class Finished:
    """The exit status and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def document(self):
        """What it wrote as json."""
        return json.loads(self.out)

    @property
    def changes(self):
        """The changes with their results, as it wrote them as json."""
        return [(c['change'], c['result']) for c in self.document['changes']]


class CommandTest(LiveTest):
    """A cloud whose operator runs the program."""

    OPTIONS = (ISOLATE,)

    def setUp(self):
        super().setUp()
        glance = GlanceApi(self.glance.images)
        glance.interceptor.__enter__()
        self.addCleanup(glance.interceptor.__exit__, None, None, None)
        self.stub_out(
            'isolate_aggregates_tools.cli.app.IsolateAggregatesApp.connect',
            lambda _: self.connection(),
        )
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.config = pathlib.Path(folder.name) / 'operator.conf'
        self.config.write_text(
            '[scheduler]\nenable_isolated_aggregate_filtering = true\n'
        )
        self.session = None

    def connection(self):
        return super().connection(self.session, image=GLANCE)

    def main(self, arguments):
        """Be the program; return its status."""
        return app.main(['--config-file', str(self.config), *arguments])

    def run_command(self, *arguments):
        """Run the program as an operator would."""
        root = logging.getLogger()
        handlers, level = list(root.handlers), root.level
        # In the real world it is not the same process.
        services = [logging.getLogger(name) for name in ('nova', 'placement')]
        for service in services:
            service.propagate = False
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = self.main(agreed(arguments))
            except SystemExit as exc:
                code = exc.code
        for service in services:
            service.propagate = True
        root.handlers[:] = handlers
        root.setLevel(level)
        return Finished(code, out.getvalue(), err.getvalue())
