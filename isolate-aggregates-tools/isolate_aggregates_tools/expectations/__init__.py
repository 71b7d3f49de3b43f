# SPDX-License-Identifier: Apache-2.0
"""Tests of a cloud's isolation: who may use which hosts, as it should be.

1. ``document`` reads a file of expectations, and checks it against
   ``schema.json``.
2. ``matching`` finds what the expectations name in the cloud.
3. ``answers`` asks the request filters and the simulator, each question once.
4. ``checks`` and ``survives`` compare the answers with what is expected;
   ``expectation`` has the values that this produces.
5. ``reasons`` explains the differences.
6. ``mutations`` alters the cloud, to find what the expectations leave out.
7. ``first_file`` describes a cloud by expectations.
8. ``report`` writes the result as JSON, described by ``documents``, and as
   JUnit.
"""
