# SPDX-License-Identifier: Apache-2.0
"""A small OpenStack on one machine, from released packages.

Real processes that listen on 127.0.0.1: Keystone, Glance, Placement, Nova with
three computes whose hypervisor is a fake, RabbitMQ and MariaDB. For tests and
for trying things out; nothing in it is meant to last.
"""
