# SPDX-License-Identifier: Apache-2.0
"""Hosts kept apart by traits: what there is, and how it is changed."""
