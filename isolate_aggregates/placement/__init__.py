# SPDX-License-Identifier: Apache-2.0
"""What is said to Placement, and how it answers."""
