# SPDX-License-Identifier: Apache-2.0
"""The features of Placement, with the microversions that they need.

From the `REST API version history
<https://docs.openstack.org/placement/latest/placement-api-microversion-history.html>`_.
"""

from isolate_aggregates.placement import (
    FORBIDDEN_AGGREGATES as FORBIDDEN_AGGREGATES,
)
from isolate_aggregates.placement import NESTED as NESTED
from isolate_aggregates.placement import Feature as Feature

CANDIDATES = Feature(10, 'listing allocation candidates', 'Pike')
LIMIT = Feature(16, 'limiting allocation candidates', 'Queens')
REQUIRED_TRAITS = Feature(17, 'requiring traits', 'Queens')
MEMBER_OF = Feature(21, 'requiring aggregates', 'Rocky')
FORBIDDEN_TRAITS = Feature(22, 'forbidding traits', 'Rocky')
REPEATED_MEMBER_OF = Feature(
    24, 'requiring several aggregates at once', 'Rocky'
)
GRANULAR = Feature(25, 'using granular request groups', 'Rocky')
IN_TREE = Feature(31, 'restricting requests to one provider tree', 'Stein')
STRING_SUFFIXES = Feature(33, 'naming request groups', 'Train')
ROOT_REQUIRED = Feature(35, 'requiring traits of the root provider', 'Train')
SAME_SUBTREE = Feature(36, 'requesting providers in one subtree', 'Train')
ANY_TRAITS = Feature(39, 'requiring any one of several traits', 'Yoga')
