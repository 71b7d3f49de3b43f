# SPDX-License-Identifier: Apache-2.0
"""Changes isolation: locks, grants and synchronization with Placement."""
