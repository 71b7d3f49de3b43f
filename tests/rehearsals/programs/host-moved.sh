# The host is in neither aggregate for a moment.
set -e
openstack aggregate create --property trait:CUSTOM_GPU=required gpu2
openstack aggregate remove host gpu g1
openstack aggregate add host gpu2 g1
