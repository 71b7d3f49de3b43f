# SPDX-License-Identifier: Apache-2.0
"""A live cloud, read and changed through the APIs of its services."""
