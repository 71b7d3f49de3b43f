# SPDX-License-Identifier: Apache-2.0
"""Blazar plugins that keep instance reservations in Placement.

Blazar provides calendar, events, API, policies and database. In Nova and
Placement, the plugins create what the specification `Placement API support for
instance reservation
<https://specs.openstack.org/openstack/blazar-specs/specs/rocky/placement-api.html>`_
describes: a private flavor, a resource class, and inventories of that class on
the reservation providers. There are no aggregates per reservation, no server
groups and no BlazarFilter. blazar-manager loads the plugins by the entry
points ``virtual.instance.placement`` and ``flavor.instance.placement``. Only
this package imports blazar.
"""
