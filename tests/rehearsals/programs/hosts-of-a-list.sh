# A loop over what the client lists.
set -e
openstack aggregate create all
for host in $(openstack compute service list --service nova-compute \
    -f value -c Host); do
    openstack aggregate add host all "$host"
done
