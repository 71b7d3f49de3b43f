# SPDX-License-Identifier: Apache-2.0
"""Isolate hosts: isolated and reserved host aggregates for Nova."""
