# SPDX-License-Identifier: Apache-2.0
"""A cloud in a file: its YAML format, and the cloud that it describes."""
