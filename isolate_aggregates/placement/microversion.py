# SPDX-License-Identifier: Apache-2.0
"""The features of Placement, with the microversions that they need.

From the `REST API version history
<https://docs.openstack.org/placement/latest/placement-api-microversion-history.html>`_.
"""

import dataclasses
import functools


@functools.total_ordering
@dataclasses.dataclass(frozen=True)
class Feature:
    """A feature of Placement.

    :param minor: The microversion that introduced it, without the ``1.``.
    :param purpose: A description, as the subject of "... needs 1.x".
    """

    minor: int
    purpose: str
    release: str

    def __lt__(self, other: 'Feature') -> bool:
        """Order features by the microversion they need."""
        return self.minor < other.minor

    @property
    def microversion(self) -> str:
        """The complete microversion, for example ``1.33``."""
        return f'1.{self.minor}'


CANDIDATES = Feature(10, 'listing allocation candidates', 'Pike')
LIMIT = Feature(16, 'limiting allocation candidates', 'Queens')
REQUIRED_TRAITS = Feature(17, 'requiring traits', 'Queens')
MEMBER_OF = Feature(21, 'requiring aggregates', 'Rocky')
FORBIDDEN_TRAITS = Feature(22, 'forbidding traits', 'Rocky')
REPEATED_MEMBER_OF = Feature(
    24, 'requiring several aggregates at once', 'Rocky'
)
GRANULAR = Feature(25, 'using granular request groups', 'Rocky')
NESTED = Feature(29, 'reading nested resource providers', 'Rocky')
IN_TREE = Feature(31, 'restricting requests to one provider tree', 'Stein')
FORBIDDEN_AGGREGATES = Feature(32, 'forbidding aggregates', 'Train')
STRING_SUFFIXES = Feature(33, 'naming request groups', 'Train')
ROOT_REQUIRED = Feature(35, 'requiring traits of the root provider', 'Train')
SAME_SUBTREE = Feature(36, 'requesting providers in one subtree', 'Train')
ANY_TRAITS = Feature(39, 'requiring any one of several traits', 'Yoga')
