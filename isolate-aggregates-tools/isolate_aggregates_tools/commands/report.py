# SPDX-License-Identifier: Apache-2.0
"""``report save``: writes a page that shows how the cloud is isolated."""

import argparse
import dataclasses
import datetime
from typing import Any

from isolate_aggregates_tools.audit import AuditedCloud
from isolate_aggregates_tools.cli import base, progress, usage
from isolate_aggregates_tools.commands import clouds, reservations
from isolate_aggregates_tools.commands.matrix import add_row_arguments
from isolate_aggregates_tools.effect import documents
from isolate_aggregates_tools.report import page
from isolate_aggregates_tools.report.calendar import Calendar
from isolate_aggregates_tools.report.content import Content
from isolate_aggregates_tools.room.documents import RELOCATION
from isolate_aggregates_tools.room.survival import survival_of


class WriteReport(usage.Command):
    """Write a page that shows which flavors may use which hosts.

    One HTML file that needs no network. It also shows the reasons, the locks
    with the capacity behind them, and the findings of the audit.
    """

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        base.add_output_argument(
            parser, 'HTML file to write; default: standard output'
        )
        add_row_arguments(
            parser,
            'These are the first to choose from on the page; in a large cloud '
            'the only ones',
        )
        parser.add_argument(
            '--try-project',
            action='append',
            default=[],
            dest='try_projects',
            metavar='<project>',
            help='Name or id of a further project to offer in "Try a request" '
            'on the page; may be repeated',
        )
        clouds.add_servers_argument(parser)
        parser.add_argument(
            '--calendar',
            type=base.positive,
            metavar='<days>',
            help='Also show the free capacity of hosts for reservations, for '
            'this number of days',
        )
        parser.add_argument(
            '--effect',
            metavar='<file>',
            help='Also show an effect that effect show -f json has written',
        )
        parser.add_argument(
            '--plan',
            metavar='<file>',
            help='Also show a plan of migrations that relocation create -f '
            'json has written',
        )
        base.add_snapshot_argument(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        base.check_live(self._usage, parsed_args, 'calendar')
        path = parsed_args.output
        if path:
            # Fail now, as reading a large cloud takes minutes.
            page.check(path)
        effect = (
            documents.load(parsed_args.effect) if parsed_args.effect else None
        )
        plan = (
            documents.document(
                parsed_args.plan,
                'a plan of relocation create',
                RELOCATION,
                'relocation create',
            )
            if parsed_args.plan
            else None
        )
        with clouds.opened(self.app, parsed_args, remembers=True) as cloud:
            images = [cloud.image(name) for name in parsed_args.images]
            audited_cloud = AuditedCloud.read(
                cloud, self.app.conf, parsed_args.servers, progress.reading
            )
            if not parsed_args.snapshot:
                audited_cloud = reservations.with_review(
                    self.app, audited_cloud
                )
            now = datetime.datetime.now(datetime.UTC)
            project = base.project_from(parsed_args, cloud)
            others = {
                name: cloud.project(name, parsed_args.project_domain)
                for name in parsed_args.try_projects
            }
            content = Content.of(
                audited_cloud,
                images,
                project,
                now,
                self._calendar(parsed_args.calendar, now),
                others,
            )
        content = dataclasses.replace(
            content,
            effect=effect,
            plan=plan,
            survival=survival_of(audited_cloud, self.app.conf),
        )
        if path:
            page.write(content, path)
            self.app.stdout.write(f'Wrote {path}.\n')
        else:
            self.app.stdout.write(page.render(content))

    def _calendar(
        self, days: int | None, now: datetime.datetime
    ) -> Calendar | None:
        if days is None:
            return None
        calendar: Calendar = reservations.command(
            'reservation_calendar_list'
        ).picture(self.app.conf, self.app.connect(), now, days)
        return calendar
