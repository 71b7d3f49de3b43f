# SPDX-License-Identifier: Apache-2.0
"""Tasks that wait for each other and otherwise run side by side."""

from collections.abc import Callable, Sequence
from concurrent import futures
import dataclasses
import graphlib


@dataclasses.dataclass(frozen=True)
class Task:
    """Something to do.

    :param name: What others call it.
    :param run: Does it.
    :param after: Names of the tasks that have to be done before.
    """

    name: str
    run: Callable[[], None]
    after: Sequence[str] = ()


def run_all(tasks):
    """Run tasks as soon as those they wait for are done.

    What a task raises is raised once those that run have ended; no others are
    begun.

    :param tasks: The tasks.
    """
    by_name = {task.name: task for task in tasks}
    order = graphlib.TopologicalSorter(
        {task.name: task.after for task in by_name.values()}
    )
    order.prepare()
    running = {}
    with futures.ThreadPoolExecutor(len(by_name)) as pool:
        while order.is_active():
            for name in order.get_ready():
                running[pool.submit(by_name[name].run)] = name
            done, _ = futures.wait(
                running, return_when=futures.FIRST_COMPLETED
            )
            for one in done:
                one.result()
                order.done(running.pop(one))
