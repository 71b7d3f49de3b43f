# SPDX-License-Identifier: Apache-2.0
"""Shows the locks of a cloud, their keys, and the capacity behind each."""
