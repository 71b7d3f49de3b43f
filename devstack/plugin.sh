# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# Runs the filters of isolate-aggregates in the nova-scheduler of a DevStack.
# stack.sh, unstack.sh and clean.sh source this with a mode and a phase; see
# https://docs.openstack.org/devstack/latest/plugins.html

# Save trace setting
IA_XTRACE=$(set +o | grep xtrace)
set +o xtrace

IA_UNITS='isolate-aggregates-sync.service isolate-aggregates-sync.timer'

# install_isolate_aggregates - Put plugin and tools beside Nova and the client
function install_isolate_aggregates {
    setup_develop "$ISOLATE_AGGREGATES_DIR"
    setup_develop "$ISOLATE_AGGREGATES_DIR/isolate-aggregates-tools" osc
}

# _ia_without list item - Print a comma-separated list without an item
function _ia_without {
    local item kept=()
    for item in ${1//,/ }; do
        if [[ "$item" != "$2" ]]; then
            kept+=("$item")
        fi
    done
    local IFS=,
    echo "${kept[*]}"
}

# _ia_with list item - Print a comma-separated list with an item at its end
function _ia_with {
    local others
    others=$(_ia_without "$1" "$2")
    echo "${others:+$others,}$2"
}

# _ia_make_available - Have Nova load the package, beside what it loads
function _ia_make_available {
    local in_tree=nova.scheduler.filters.all_filters
    local ours=isolate_aggregates.nova.all_filters
    local loaded
    loaded=$(iniget_multiline "$NOVA_CONF" filter_scheduler available_filters)
    loaded=$(_ia_with "${loaded// /,}" $ours)
    # An option that is set takes the place of Nova's default.
    loaded=$in_tree,$(_ia_without "$loaded" $in_tree)
    # shellcheck disable=SC2086
    iniset_multiline "$NOVA_CONF" filter_scheduler available_filters \
        ${loaded//,/ }
}

# configure_isolate_aggregates - Switch the filters on in nova.conf
function configure_isolate_aggregates {
    local enabled filters=$ISOLATE_AGGREGATES_FILTERS
    enabled=$(iniget "$NOVA_CONF" filter_scheduler enabled_filters)
    enabled=${enabled:-$NOVA_FILTERS}
    if [[ "$ISOLATE_AGGREGATES_BLAZAR" == "True" ]]; then
        # It would do again for every host what blazar_reservation does.
        enabled=$(_ia_without "$enabled" BlazarFilter)
        filters=$(_ia_with "$filters" blazar_reservation)
    fi
    enabled=$(_ia_with "$enabled" IsolatedAggregatesFilter)

    _ia_make_available
    iniset "$NOVA_CONF" filter_scheduler enabled_filters "$enabled"
    iniset "$NOVA_CONF" scheduler enable_isolated_aggregate_filtering True
    iniset "$NOVA_CONF" isolate_aggregates request_filters "$filters"
    if [[ -n "$ISOLATE_AGGREGATES_SOURCE" ]]; then
        iniset "$NOVA_CONF" isolate_aggregates aggregate_source \
            "$ISOLATE_AGGREGATES_SOURCE"
    fi

    local side prefix=$ISOLATE_AGGREGATES_RESERVATION_PREFIX
    if [[ -n "$prefix" ]]; then
        for side in required default_forbidden; do
            iniset "$NOVA_CONF" scheduler \
                "placement_req_${side}_member_prefix" "$prefix"
        done
    fi
}

# configure_isolate_aggregates_blazar - Put our plugin in the place of Blazar's
function configure_isolate_aggregates_blazar {
    local plugins
    plugins=$(iniget "$BLAZAR_CONF_FILE" manager plugins)
    plugins=$(_ia_without "$plugins" virtual.instance.plugin)
    plugins=$(_ia_with "$plugins" virtual.instance.placement)
    iniset "$BLAZAR_CONF_FILE" manager plugins "$plugins"
    iniset "$NOVA_CONF" blazar:physical:host aggregate_freepool_name \
        "$BLAZAR_FREEPOOL_NAME"
}

# check_isolate_aggregates - Stop if nova-scheduler would not isolate
function check_isolate_aggregates {
    local worst=0
    "$NOVA_BIN_DIR"/isolate-aggregates-status --config-file "$NOVA_CONF" \
        upgrade check || worst=$?
    # 1 is a warning.
    if [[ $worst -gt 1 ]]; then
        die $LINENO "isolate-aggregates is not set up as it has to be"
    fi
}

# isolate_aggregates - Run the program as the administrator
function isolate_aggregates {
    "$NOVA_BIN_DIR"/isolate-aggregates --config-file "$NOVA_CONF" \
        --os-cloud devstack-admin "$@"
}

# start_isolate_aggregates - Start the timer that runs sync
function start_isolate_aggregates {
    local unit service=$SYSTEMD_DIR/isolate-aggregates-sync.service
    local command="$NOVA_BIN_DIR/isolate-aggregates"
    command+=" --config-file $NOVA_CONF --os-cloud devstack-admin"
    for unit in $IA_UNITS; do
        sudo install -m 644 "$ISOLATE_AGGREGATES_DIR/etc/systemd/$unit" \
            "$SYSTEMD_DIR/$unit"
    done
    iniset -sudo "$service" Service User "$STACK_USER"
    iniset -sudo "$service" Service ExecStart "$command sync --yes"
    # DevStack may be in a home directory.
    iniset -sudo "$service" Service ProtectHome read-only
    $SYSTEMCTL daemon-reload
    $SYSTEMCTL enable --now isolate-aggregates-sync.timer
}

# create_isolate_aggregates_example - Isolate hosts for licensed Windows
function create_isolate_aggregates_example {
    local host trait=CUSTOM_LICENSED_WINDOWS
    local client="openstack --os-cloud devstack-admin"
    $client aggregate create win-hosts
    for host in ${ISOLATE_AGGREGATES_EXAMPLE_HOSTS//,/ }; do
        $client aggregate add host win-hosts "$host"
    done
    isolate_aggregates lock create win-hosts --trait $trait --yes
    $client flavor create win.small --vcpus 1 --ram 512 --disk 1
    isolate_aggregates key add --flavor win.small --trait $trait --yes
}

# stop_isolate_aggregates - Stop the timer
function stop_isolate_aggregates {
    $SYSTEMCTL disable --now isolate-aggregates-sync.timer || true
}

# cleanup_isolate_aggregates - Remove what start_isolate_aggregates has made
function cleanup_isolate_aggregates {
    local unit
    for unit in $IA_UNITS; do
        sudo rm -f "$SYSTEMD_DIR/$unit"
    done
    $SYSTEMCTL daemon-reload
}

# What runs on the node of nova-scheduler.
if is_service_enabled n-sch; then
    if [[ "$1" == "stack" && "$2" == "pre-install" ]]; then
        # Nothing is needed that the package does not bring.
        :
    elif [[ "$1" == "stack" && "$2" == "install" ]]; then
        echo_summary "Installing isolate-aggregates"
        install_isolate_aggregates
    elif [[ "$1" == "stack" && "$2" == "post-config" ]]; then
        echo_summary "Configuring isolate-aggregates"
        configure_isolate_aggregates
        if [[ "$ISOLATE_AGGREGATES_BLAZAR" == "True" ]]; then
            configure_isolate_aggregates_blazar
        fi
    elif [[ "$1" == "stack" && "$2" == "extra" ]]; then
        echo_summary "Checking isolate-aggregates"
        check_isolate_aggregates
        if [[ "$ISOLATE_AGGREGATES_SYNC" == "True" ]]; then
            start_isolate_aggregates
        fi
    elif [[ "$1" == "stack" && "$2" == "test-config" ]]; then
        # Only now Nova knows its hosts.
        if [[ "$ISOLATE_AGGREGATES_EXAMPLE" == "True" ]]; then
            echo_summary "Isolating hosts for licensed Windows"
            create_isolate_aggregates_example
        fi
    fi

    if [[ "$1" == "unstack" ]]; then
        if [[ "$ISOLATE_AGGREGATES_SYNC" == "True" ]]; then
            stop_isolate_aggregates
        fi
    fi

    if [[ "$1" == "clean" ]]; then
        cleanup_isolate_aggregates
    fi
fi

# Restore xtrace
$IA_XTRACE
