# Nothing differs in the end, but in between.
set -e
openstack aggregate unset --property trait:CUSTOM_GPU gpu
openstack aggregate set --property trait:CUSTOM_GPU=required gpu
