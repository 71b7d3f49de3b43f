# SPDX-License-Identifier: Apache-2.0
"""Repairs are tried on a copy of the cloud before they are shown."""

import dataclasses
import os
import random

from audit_clouds import LICENSED, LOCK, configuration
import pytest

from isolate_aggregates.filters.pipeline import Pipeline
from isolate_aggregates.testing import (
    make_aggregate,
    make_compute_node,
    make_flavor,
    make_image,
    make_snapshot,
)
from isolate_aggregates.tools.advice import commands, outcome
from isolate_aggregates.tools.answers import scope
from isolate_aggregates.tools.answers.deciding import Questions
from isolate_aggregates.tools.answers.offers import Offers
from isolate_aggregates.tools.audit import AuditedCloud, audit, trial

CONF = configuration(
    request_filters=['isolate_aggregates', 'isolate_tenants'],
    trait_sources=['flavor', 'image'],
)
CLOUDS = int(os.environ.get('RANDOM_CLOUDS', '20'))
SPECS = (
    {},
    LOCK,
    {f'trait:{LICENSED}': 'Required'},
    {'trait:CUSTOM_LICENCED_WINDOWS': 'required'},
    {'trait:CUSTOM_B': 'required'},
    {**LOCK, 'trait:CUSTOM_B': 'required'},
    {'trait:CUSTOM_B': 'forbidden'},
    {'trait:CUSTOM_NONE': 'forbidden'},
    {'resources:VGPU': '3'},
    {'hw:tpm_version': '2.0'},
    {'trait_A:CUSTOM_B': 'required'},
)
TAGS = (
    {},
    LOCK,
    {f'trait:{LICENSED}': 'true'},
    {'trait:CUSTOM_B': 'required'},
    {f'trait_{LICENSED}': 'required'},
    {'filter_tenant_id': 'p1'},
    {'Filter_tenant_id': 'p1'},
)


def random_cloud(number):
    """Return a small cloud that is set up badly."""
    chance = random.Random(number)
    hosts = [f'h{n}' for n in range(chance.randint(1, 4))]
    aggregates = [
        make_aggregate(
            f'a{n}',
            chance.choice(TAGS),
            chance.sample(hosts, chance.randint(0, len(hosts))),
            id=n,
        )
        for n in range(1, chance.randint(2, 4))
    ]
    nodes = [
        make_compute_node(
            host,
            inventories={
                'VCPU': 4,
                **({'VGPU': 2} if chance.random() < 0.3 else {}),
            },
            traits=[
                trait
                for trait in (LICENSED, 'CUSTOM_B')
                if chance.random() < 0.4
            ],
        )
        for host in hosts
    ]
    flavors = [
        make_flavor(
            f'f{n}',
            chance.choice(SPECS),
            vcpus=chance.choice((1, 1, 1, 5)),
            ram=0,
            disk=0,
        )
        for n in range(chance.randint(1, 4))
    ]
    images = [make_image('plain'), make_image('keyed', LOCK)]
    return AuditedCloud.of(
        make_snapshot(
            aggregates,
            nodes,
            flavors=flavors,
            images=images[: chance.randint(1, 2)],
        ),
        CONF,
    )


def after(cloud, findings):
    """Return the cloud after the first repairs of findings."""
    todo = dict.fromkeys(
        command
        for finding in findings
        for repair in finding.repairs[:1]
        for command in repair.commands
    )
    # As an operator who does all that is printed.
    ordered = sorted(todo, key=lambda each: (each,) == commands.SYNC)
    states = outcome.outcomes(
        cloud.snapshot, tuple(ordered), Pipeline(cloud.filters)
    )
    *_, snapshot = cloud.snapshot, *states
    return dataclasses.replace(cloud, snapshot=snapshot)


def hosts_of(cloud):
    """Return the number of hosts of each flavor, with each image."""
    pipeline = Pipeline((*cloud.running, *cloud.mirrors))
    questions = Questions(cloud.snapshot, pipeline, cloud.requests)
    offers = Offers(cloud.snapshot)
    return {
        (flavor.name, image and image.name): len(
            offers.hosts(questions.of(flavor, image, None))
        )
        for flavor in cloud.snapshot.flavors
        for image in scope.images(cloud.snapshot, pipeline)
    }


@pytest.mark.parametrize('number', range(CLOUDS))
def test_all_first_repairs_hold_together(number):
    cloud = random_cloud(number)
    findings = trial.held(cloud, audit(cloud), audit)
    repaired = after(cloud, findings)
    left = {(each.kind, each.subject) for each in audit(repaired)}
    for each in findings:
        todo = each.repairs[0].commands if each.repairs else ()
        if todo and todo != commands.SYNC:
            assert (each.kind, each.subject) not in left
    now = hosts_of(repaired)
    # Sync carries out what the tags say, whoever loses a host by it.
    synced = hosts_of(
        dataclasses.replace(
            cloud,
            snapshot=outcome.synced(cloud.snapshot, Pipeline(cloud.filters)),
        )
    )
    for asker, number_of_hosts in hosts_of(cloud).items():
        if number_of_hosts and synced[asker]:
            assert now.get(asker, 1)
