# SPDX-License-Identifier: Apache-2.0
"""The control plane: everything up, everything down, one service at a time."""

from concurrent import futures
import functools
import shutil
import time

from control_plane import checks
from control_plane.bootstrap import Bootstrap
from control_plane.configuration import Configuration
from control_plane.databases import Databases
from control_plane.processes import Process
from control_plane.services import all_services, scheduler
from control_plane.settings import HOSTS
from control_plane.tasks import Task, run_all

_SECONDS = 300

# Others talk to these until they are gone.
_LAST = ('rabbitmq', 'epmd')


class Plane:
    """A control plane, running or not.

    :param settings: The settings of the control plane.
    """

    def __init__(self, settings):
        self.settings = settings
        self._databases = Databases(settings)

    def up(self):
        """Start what does not run; set everything up if that is not done.

        :raises RuntimeError: if something fails, with where its log is.
        """
        complete = self._complete.exists()
        if not complete:
            # Half of an installation is thrown away.
            self.down()
            checks.folder(self.settings)
            checks.programs(self.settings)
            checks.ports(self.settings)
            shutil.rmtree(self.settings.logs, ignore_errors=True)
        for folder in (self.settings.state, self._run, self.settings.logs):
            folder.mkdir(0o700, parents=True, exist_ok=True)
        self.settings.keep()
        configuration = self._configuration()
        configuration.write_all()
        for name in HOSTS:
            self._configure(configuration, name, 'nova-compute.conf')
        self._configure(configuration, 'nova-scheduler', 'nova-scheduler.conf')
        run_all(self._tasks(complete))
        self._complete.touch()

    def down(self):
        """Stop everything and forget everything but the logs."""
        if not self.settings.kept.exists():
            # Other files belong to somebody else and must be kept.
            return
        names = {path.stem for path in self._run.glob('*.json')}
        with futures.ThreadPoolExecutor() as pool:
            list(pool.map(self.stop, names.difference(_LAST)))
        for name in _LAST:
            self.stop(name)
        self._databases.stop()
        remnants = {self.settings.logs, self.settings.kept}
        for path in set(self.settings.state.iterdir()) - remnants:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        self.settings.kept.unlink(missing_ok=True)

    def is_running(self):
        """Return whether everything is set up and every service runs."""
        return (
            self._complete.exists()
            and self._databases.is_running()
            and all(map(self.runs, self._services()))
        )

    def runs(self, name):
        """Return whether a service runs.

        :param name: Its name.
        """
        return self._process(name).is_running()

    def start(self, name):
        """Start a service, unless it runs, and wait until it is ready.

        :param name: Its name.
        :raises RuntimeError: if it does not get ready.
        """
        self._start(self._services()[name])

    def stop(self, name):
        """Stop a service, if it runs, and wait until it is gone.

        :param name: Its name.
        """
        self._process(name).stop()

    def add_scheduler(self):
        """Start one more nova-scheduler.

        :returns: Its name, to stop it by.
        :raises RuntimeError: if it does not get ready.
        """
        number = len(list(self._run.glob('nova-scheduler*.json'))) + 1
        name = f'nova-scheduler-{number}'
        self._configure(self._configuration(), name, 'nova-scheduler.conf')
        self._start(scheduler(self.settings, name))
        return name

    def log(self, name):
        """Return the file that a service logs to.

        :param name: Its name.
        """
        return self.settings.logs / f'{name}.log'

    @property
    def _complete(self):
        return self.settings.state / 'complete'

    @property
    def _run(self):
        return self.settings.state / 'run'

    def _services(self):
        return {
            service.name: service for service in all_services(self.settings)
        }

    def _process(self, name):
        return Process(self._run / f'{name}.json', self.log(name))

    def _configuration(self):
        return Configuration(self.settings, self._databases.url)

    def _configure(self, configuration, name, template):
        configuration.write(template, f'etc/nova/{name}.conf', host=name)

    def _tasks(self, complete):
        yield Task('mariadb', self._databases.start)
        if self.settings.broker_url is not None:
            yield Task(
                'rabbitmq', functools.partial(checks.broker, self.settings)
            )
        for service in self._services().values():
            yield Task(
                service.name,
                functools.partial(self._start, service),
                service.after,
            )
        steps = _steps(Bootstrap(self.settings, self._databases))
        for step in [
            Task('databases', self._databases.create, ('mariadb',)),
            *steps,
        ]:
            yield _done(step) if complete else step

    def _start(self, service):
        process = self._process(service.name)
        if process.is_running():
            return
        log = self.log(service.name)
        written = log.stat().st_size if log.exists() else 0
        process.start(service.command, service.environment)
        until = time.monotonic() + _SECONDS
        while not service.is_ready(_end_of(log, written)):
            if not process.is_running() or time.monotonic() > until:
                raise RuntimeError(
                    f'{service.name} does not get ready; its log is {log}'
                )
            time.sleep(0.2)


def _steps(bootstrap):
    """Return the one-time setup steps."""
    for name in ('keystone', 'glance', 'placement', 'nova'):
        yield Task(f'{name} schema', getattr(bootstrap, name), ('databases',))
    yield Task('accounts', bootstrap.accounts, ('keystone',))
    yield Task('flavors', bootstrap.flavors, ('accounts', 'nova-api'))
    yield Task('image', bootstrap.image, ('accounts', 'glance'))
    yield Task('hosts', bootstrap.hosts, HOSTS)


def _done(task):
    """Return a task with nothing left to do."""
    return Task(task.name, lambda: None, task.after)


def _end_of(log, start):
    with log.open('rb') as opened:
        opened.seek(start)
        return opened.read().decode('utf-8', 'replace')
