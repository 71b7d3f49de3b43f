# SPDX-License-Identifier: Apache-2.0
"""``isolate-aggregates-status``: checks for a nova-scheduler."""
