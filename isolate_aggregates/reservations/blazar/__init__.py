# SPDX-License-Identifier: Apache-2.0
"""Blazar's instance reservations, kept in Placement.

Blazar brings calendar, events, API, policies and database; what it keeps in
Nova and Placement is what the spec `Placement API support for instance
reservation
<https://specs.openstack.org/openstack/blazar-specs/specs/rocky/placement-api.html>`_
asks for: a private flavor, a resource class, and inventories of it on the
reservation providers. There is no aggregate for each reservation, no server
group and no BlazarFilter. blazar-manager loads the plugins by the names
``virtual.instance.placement`` and ``flavor.instance.placement``; this is the
only package that imports blazar.
"""
