#!/bin/sh
# Asks for a Windows and a Linux server on the Windows licensing cloud.
# BIN is the directory of the installed commands; default: those on PATH.
set -eu
cd "$(dirname "$0")/.."
command=${BIN:+$BIN/}isolate-aggregates
cloud=examples/windows-licensing.yaml

# Paths may have characters that a shell gives a meaning.
quoted() {
    case $1 in
    *[!A-Za-z0-9_./-]*)
        printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"
        ;;
    *) printf %s "$1" ;;
    esac
}

ask() {
    echo "\$ isolate-aggregates candidate list \\"
    echo "      --snapshot $cloud \\"
    echo "      $*"
    "$command" candidate list --snapshot "$cloud" "$@"
    echo
}

echo "A Windows server may use the licensed hosts:"
echo
ask --flavor m1.small --image windows-2022
echo "A Linux server may not, and this is why:"
echo
ask --flavor m1.small --image debian-12
cat <<END
What to type next, in this folder:

${BIN:+  . $(quoted "$BIN/activate")
}  isolate-aggregates explain --snapshot $cloud \\
      --flavor m1.small --image debian-12 --host win-1
  isolate-aggregates matrix list --snapshot $cloud
  isolate-aggregates report save --snapshot $cloud \\
      --output report.html
END
