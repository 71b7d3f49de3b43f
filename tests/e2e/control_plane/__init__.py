# SPDX-License-Identifier: Apache-2.0
"""A small OpenStack on one machine, from released packages.

Real processes that listen on 127.0.0.1: Keystone, Glance, Placement, Nova with
three compute services and fake hypervisors, RabbitMQ and MariaDB. It is for
tests and experiments only.
"""
