# What is no matter of a cloud file fails.
openstack network list
