# SPDX-License-Identifier: Apache-2.0
"""Filters that repeat what Nova itself adds to a request.

They make a command ask what Nova would ask. Inside nova-scheduler, where Nova
adds these constraints, they do not run. They are found under
``isolate_aggregates.mirrored_filters``, need no configuration, and run after
the filters that decide.
"""
