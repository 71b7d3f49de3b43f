#!/usr/bin/env bash
# Expected: SIGHUP makes the workers of a service read their configuration again
#   in the same processes, and calls reset() of the service in each.
# Seen: with the backend of native threads each worker is stopped and another
#   process started; reset() is never called.
# Package: oslo.service 4.8.0, cotyledon 2.2.0
# Why: what a plugin keeps in memory is gone after each "systemctl reload", what
#   it opened or registered at its start is so once more, and counters of a
#   worker begin at 0. What hangs on reset() is never done.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    oslo.service[threading]==4.8.0 cotyledon==2.2.0
cd "$folder"
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import pathlib
import signal
import subprocess
import sys
import time

pathlib.Path('service.py').write_text('''
import os
import threading
from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)
from oslo_config import cfg
from oslo_service import service


class Service(service.ServiceBase):
    def say(self, what):
        with open('told', 'a') as file:
            file.write(f'{what} {os.getpid()}\\n')

    def start(self):
        self.ended = threading.Event()
        self.say('start')

    def wait(self):
        self.ended.wait()

    def stop(self):
        self.say('stop')
        self.ended.set()

    def reset(self):
        self.say('reset')


if __name__ == '__main__':
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    service.launch(conf, Service(), workers=2, restart_method='mutate').wait()
''')
TOLD = pathlib.Path('told')
TOLD.touch()


def told(what):
    """Return the processes that said something."""
    lines = [line.split() for line in TOLD.read_text().splitlines()]
    return [process for said, process in lines if said == what]


def wait_for(what, number):
    until = time.monotonic() + 60
    while len(told(what)) < number and time.monotonic() < until:
        time.sleep(0.1)


with subprocess.Popen(
    [sys.executable, '-W', 'ignore', 'service.py'], stderr=subprocess.DEVNULL
) as launcher:
    wait_for('start', 2)
    launcher.send_signal(signal.SIGHUP)
    wait_for('start', 4)
    started, stopped = told('start'), told('stop')
    launcher.terminate()

for name in ('oslo.service', 'cotyledon'):
    print(name, metadata.version(name))
print('workers before SIGHUP: 2, stopped by it:', len(stopped))
print('new processes:', len({*started[2:]} - {*started[:2]}))
print('calls of reset():', len(told('reset')))
if (len(started), {*stopped}, told('reset')) != (4, {*started[:2]}, []):
    sys.exit('changed')
PROGRAM
# seen: oslo.service 4.8.0
# seen: cotyledon 2.2.0
# seen: workers before SIGHUP: 2, stopped by it: 2
# seen: new processes: 2
# seen: calls of reset(): 0
