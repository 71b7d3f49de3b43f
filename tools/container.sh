#!/bin/sh
# Builds the image on a base of Debian's packages and starts it once: no
# registry, no daemon, no podman. Needs the superuser, buildah, mmdebstrap, and
# a directory with the wheels, by default "wheels" (see "make container").
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
wheels=$(cd "${1:-wheels}" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/container.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM
export BUILDAH_ISOLATION=chroot

buildah() {
    command buildah --storage-driver vfs --root "$work/store" \
        --runroot "$work/run" "$@"
}

# A mirror may be older than its signature is valid.
mmdebstrap --quiet --mode=root --variant=minbase \
    --aptopt='Acquire::Check-Valid-Until "false"' \
    --include=python3-venv,python-is-python3,ca-certificates \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$work/base.tar"
base=$(buildah from scratch)
buildah add --quiet "$base" "$work/base.tar" / > /dev/null
buildah commit --quiet --rm "$base" localhost/base > /dev/null
rm "$work/base.tar"

mkdir "$work/context"
cp -R "$wheels" "$work/context/wheels"
buildah build --quiet --pull-never --build-arg BASE=localhost/base \
    --tag localhost/isolate-aggregates --file "$root/etc/container/Containerfile" \
    "$work/context" > /dev/null
buildah images localhost/isolate-aggregates

# The user of the image, which is not root.
started=$(buildah from --pull-never localhost/isolate-aggregates)
run() {
    buildah run --volume "$root/examples:/examples:ro" "$started" -- "$@"
}
run sh -c 'id -u | grep -qx 65532 && ! touch /usr/written 2> /dev/null'
run isolate-aggregates --version
run isolate-aggregates lock list --snapshot /examples/gpu-hosts.yaml
run isolate-aggregates sync --snapshot /examples/gpu-hosts.yaml --dry-run ||
    [ $? -eq 3 ]
run isolate-aggregates exporter --snapshot /examples/gpu-hosts.yaml \
    --output /tmp/cloud.prom
run grep -c isolate_aggregates_ /tmp/cloud.prom
