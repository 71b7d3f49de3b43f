# SPDX-License-Identifier: Apache-2.0
"""How long rehearsals take, beside ``effect show`` of the same file.

    python tools/benchmarks/rehearsals.py [--check] [--csv FILE] [hosts]

The cloud is that of ``scale.py`` with ten servers on each host. Three tools
are rehearsed: ``true``; a script that locks 50 aggregates one after the other;
and, with five flavors for each host, one that lists them in pages and gives a
key to the last one. ``effect show`` makes one change: it locks an aggregate,
or gives that key. Both run three times in turn, and the shortest time of each
counts. It is processor time, also that of the tool, and the peak of the memory
of a process. With ``--check`` the exit status is 1 if a bound is not met.
Whether the system can keep tools off other networks makes no difference, so
they may reach them.
"""

from collections.abc import Sequence
import dataclasses
import json
import pathlib
import sys
import tempfile

import scale
import table

from isolate_aggregates_tools.cloud.file import serialize
from isolate_aggregates_tools.cloud.snapshot import Snapshot

HOSTS = 1_000
CHANGES = 50
# For each host.
FLAVORS = 5
ROUNDS = 3
# MiB for each of the processes.
MEMORY = 250
# As a script of an operator, but without the start of a client.
TOOL = """
import json, os, sys, urllib.request

def ask(method, url, body=None, **headers):
    headers['Content-Type'] = 'application/json'
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(asked) as answer:
        return answer.headers, json.loads(answer.read() or 'null')

user = {
    'name': os.environ['OS_USERNAME'],
    'password': os.environ['OS_PASSWORD'],
    'domain': {'id': 'default'},
}
identity = {'methods': ['password'], 'password': {'user': user}}
url = os.environ['OS_AUTH_URL'] + '/auth/tokens'
headers, answer = ask('POST', url, {'auth': {'identity': identity}})
[nova] = [
    service['endpoints'][0]['url']
    for service in answer['token']['catalog']
    if service['type'] == 'compute'
]
token = {'X-Auth-Token': headers['X-Subject-Token']}
"""
LOCK = """
found = ask('GET', nova + '/os-aggregates', **token)[1]['aggregates']
ids = {each['name']: each['id'] for each in found}
for name in json.loads(sys.argv[1]):
    metadata = {'trait:CUSTOM_LICENSE_0': 'required'}
    ask(
        'POST',
        f'{nova}/os-aggregates/{ids[name]}/action',
        {'set_metadata': {'metadata': metadata}},
        **token,
    )
"""
LIST = """
url, found = nova + '/flavors/detail?is_public=None', []
while url:
    answer = ask('GET', url, **token)[1]
    found += answer['flavors']
    url = answer.get('flavors_links', [{'href': ''}])[0]['href']
name, count = json.loads(sys.argv[1])
assert len(found) == count, len(found)
[last] = [each['id'] for each in found if each['name'] == name]
specs = {'extra_specs': {'trait:CUSTOM_LICENSE_1': 'required'}}
ask('POST', f'{nova}/flavors/{last}/os-extra_specs', specs, **token)
"""


@dataclasses.dataclass(frozen=True)
class Row:
    """Seconds of processor time, and MiB of memory."""

    tool: str
    hosts: int
    flavors: int
    seconds: float
    effect_seconds: float
    ratio: float
    mebibytes: float
    effect_mebibytes: float

    def misses(self, most: float | None) -> bool:
        """Return whether it is beyond a bound.

        :param most: The highest ratio; None for any.
        """
        is_slow = most is not None and self.ratio > most
        return is_slow or self.mebibytes > MEMORY


def measured(
    name: str,
    snapshot: Snapshot,
    command: Sequence[str],
    change: Sequence[str],
    folder: str,
) -> Row:
    """Return the costs of a tool.

    :param name: What it is called in the table.
    :param change: The options of ``effect show``.
    """
    files = scale.Files(pathlib.Path(folder))
    with open(files.cloud, 'w', encoding='utf-8') as stream:
        json.dump(serialize.document(snapshot), stream)
    file = ('--snapshot', files.cloud)
    costs = [
        (
            scale.run(
                ['rehearse', *file, '--any-network', '--', *command], files
            ),
            scale.run(['effect', 'show', *file, *change], files),
        )
        for _ in range(ROUNDS)
    ]
    seconds, of_effect = (
        min(cost.processor for cost in some)
        for some in zip(*costs, strict=True)
    )
    memory, memory_of_effect = (
        max(cost.memory for cost in some) for some in zip(*costs, strict=True)
    )
    return Row(
        name,
        len(snapshot.providers),
        len(snapshot.flavors),
        seconds,
        of_effect,
        seconds / of_effect,
        memory,
        memory_of_effect,
    )


def main() -> None:
    """Measure and print a table."""
    parser = table.parser('hosts', HOSTS)
    parser.add_argument('--check', action='store_true')
    options = parser.parse_args()
    cloud = scale.with_servers(scale.cloud(options.hosts))
    # Every other rack is not locked.
    racks = [
        rack.name
        for rack in cloud.aggregates
        if rack.name.startswith('rack') and not rack.metadata
    ][:CHANGES]
    key = 'trait:CUSTOM_LICENSE_{}=required'
    lock = ('--set', racks[0], key.format(0))
    count = FLAVORS * options.hosts
    last = f'flavor-{count - 1}'
    large = dataclasses.replace(
        cloud, flavors=tuple(map(scale.flavor, range(count)))
    )
    python = (sys.executable, '-c')
    with tempfile.TemporaryDirectory() as folder:
        rows = {
            measured('true', cloud, ('true',), lock, folder): 1.5,
            measured(
                f'{len(racks)} changes',
                cloud,
                (*python, TOOL + LOCK, json.dumps(racks)),
                lock,
                folder,
            ): 4.0,
            measured(
                'all flavors',
                large,
                (*python, TOOL + LIST, json.dumps([last, count])),
                ('--flavor-set', last, key.format(1)),
                folder,
            ): None,
        }
    table.report([*rows], options.csv)
    if options.check:
        sys.exit(any(row.misses(most) for row, most in rows.items()))


if __name__ == '__main__':
    main()
