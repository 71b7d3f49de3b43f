# SPDX-License-Identifier: Apache-2.0
"""Shows which flavors and images may use which hosts.

:mod:`~isolate_aggregates_tools.matrix.matrix` computes it;
:mod:`~isolate_aggregates_tools.matrix.columns` groups the hosts for display.
"""
