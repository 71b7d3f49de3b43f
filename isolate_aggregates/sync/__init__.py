# SPDX-License-Identifier: Apache-2.0
"""Makes Placement agree with the host aggregates and their tags.

:mod:`~isolate_aggregates.sync.state` reads how things are,
:mod:`~isolate_aggregates.sync.plan` says what is to change, and
:mod:`~isolate_aggregates.sync.apply` changes it.
"""
