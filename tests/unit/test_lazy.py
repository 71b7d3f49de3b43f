# SPDX-License-Identifier: Apache-2.0
"""Lazy properties are computed once, and no lock is held meanwhile."""

import threading

from isolate_aggregates.lazy import lazy_property

# Long enough to fail the test; no test waits for it.
FOREVER = 30


class Lazy:
    calls = 0
    meanwhile = staticmethod(lambda: None)

    @lazy_property
    def value(self):
        """The documentation."""
        self.calls += 1
        value = [self.calls]
        self.meanwhile()
        return value


def test_it_is_computed_once():
    lazy = Lazy()
    assert lazy.value is lazy.value
    assert lazy.calls == 1
    del lazy.value
    assert lazy.value == [2]


def test_it_has_the_documentation_of_the_function():
    assert Lazy.value.__doc__ == 'The documentation.'


def test_instances_do_not_wait_for_each_other():
    lazy = Lazy()
    values = []

    def other():
        thread = threading.Thread(
            target=lambda: values.append(Lazy().value), daemon=True
        )
        thread.start()
        thread.join(5)
        values.append('joined')

    lazy.meanwhile = other
    assert lazy.value == [1]
    assert values == [[1], 'joined']


def test_threads_that_compute_at_the_same_time_get_one_result():
    lazy = Lazy()
    both = threading.Barrier(2)
    lazy.meanwhile = lambda: both.wait(FOREVER)
    values = []
    threads = [
        threading.Thread(target=lambda: values.append(lazy.value))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lazy.calls == 2
    assert values[0] is values[1]
