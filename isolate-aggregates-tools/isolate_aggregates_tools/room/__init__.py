# SPDX-License-Identifier: Apache-2.0
"""Where existing servers can go: if hosts fail, and to make room."""
