# SPDX-License-Identifier: Apache-2.0
"""Makes property tests independent of how fast a machine is.

Each suite with such tests imports this in its conftest, before its tests.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    'any machine',
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile('any machine')
