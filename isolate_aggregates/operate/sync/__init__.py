# SPDX-License-Identifier: Apache-2.0
"""Makes Placement agree with the host aggregates and their tags.

:mod:`~isolate_aggregates.operate.sync.snapshot` reads how things are,
:mod:`~isolate_aggregates.operate.sync.plan` says what is to change, and
:mod:`~isolate_aggregates.operate.sync.apply` changes it.
"""
