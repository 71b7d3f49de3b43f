# SPDX-License-Identifier: Apache-2.0
"""The request filters, one file each.

A filter is a class whose instances are called with the request and the
aggregates and yield constraints. It does no I/O and changes nothing. It says
where its settings come from in two optional class attributes:

``SETTINGS``
    Constructor argument -> ``(group, option)`` of the configuration.
``ENABLED_BY``
    ``(group, option)`` of a boolean; while that is false the filter is off.

A class with options of its own may have a static method
``register_opts(conf)``. A filter that may forbid many aggregates says in
``locks(aggregates)`` which it forbids together: it yields a
:class:`~isolate_aggregates.aggregates.Lock` for each, and a rollup aggregate
can then stand for them. One line under ``isolate_aggregates.request_filters``
in ``setup.cfg`` makes the filter known by name.
"""
