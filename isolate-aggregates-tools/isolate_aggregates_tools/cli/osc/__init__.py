# SPDX-License-Identifier: Apache-2.0
"""``openstack isolation ...``: the commands as a plugin of OpenStackClient."""
