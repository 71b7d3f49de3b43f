# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# Stands in for DevStack, as far as its plugins use it. Files are written, and
# what would change the machine is printed.

ENABLED_SERVICES=${ENABLED_SERVICES:-n-sch,n-api}
NOVA_CONF=$DEST/nova.conf
NOVA_BIN_DIR=$DEST/bin
NOVA_FILTERS=ComputeFilter,SameHostFilter
BLAZAR_CONF_FILE=$DEST/blazar.conf
BLAZAR_FREEPOOL_NAME=freepool
SYSTEMD_DIR=$DEST/systemd
SYSTEMCTL='echo systemctl'
STACK_USER=stack

mkdir -p "$NOVA_BIN_DIR" "$SYSTEMD_DIR"
for program in isolate-aggregates isolate-aggregates-status; do
    cat > "$NOVA_BIN_DIR/$program" <<'EOF'
#!/bin/sh
echo "$(basename "$0") $*"
exit "${STATUS:-0}"
EOF
    chmod +x "$NOVA_BIN_DIR/$program"
done

function define_plugin { :; }
function echo_summary { :; }
function setup_develop { echo "setup_develop $*"; }
function openstack { echo "openstack $*"; }
function sudo { "$@"; }

function die {
    shift
    echo "$*" >&2
    exit 1
}

function is_service_enabled {
    [[ ",$ENABLED_SERVICES," == *",$1,"* ]]
}

function trueorfalse {
    local given=${!2:-$1}
    [[ "$given" =~ ^(1|[Tt]rue|[Yy]es)$ ]] && echo True || echo False
}

# ini-file functions: [-sudo] file section option [value ...]
function _ini {
    python3 "$(dirname "${BASH_SOURCE[0]}")/ini_file.py" "$@"
}
function iniget { _ini get "$@"; }
function iniget_multiline { _ini get "$@"; }
function iniset_multiline { _ini set "$@"; }
function iniset {
    [[ "$1" == -sudo ]] && shift
    _ini set "$1" "$2" "$3" "$4"
}
