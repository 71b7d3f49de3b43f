#!/usr/bin/env bash
# Expected: an image property that is too long for Nova's record of the server
#   makes nova-api refuse the server, or is kept whole.
# Seen: Nova keeps the first 255 bytes and says nothing. A character of several
#   bytes at the end is dropped whole.
# Package: nova 34.0.0
# Why: a value that names projects or reservations, separated by commas, ends in
#   half a name, and whatever reads the record later compares with that.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet \
    nova==34.0.0 SQLAlchemy==2.0.41
"$folder/venv/bin/python" - <<'PROGRAM'
from importlib import metadata
import sys
import warnings

warnings.simplefilter('ignore')  # of eventlet, when it is imported

from nova import utils

values = {'ascii': 'x' * 300, 'umlauts': '\u00fc' * 200}
kept = utils.get_system_metadata_from_image({'properties': values})
sizes = {
    name: len(kept[f'image_{name}'].encode()) for name in values
}
print('nova', metadata.version('nova'))
print('bytes given:', {name: len(one.encode()) for name, one in values.items()})
print('bytes kept:', sizes)
if sizes != {'ascii': 255, 'umlauts': 254}:
    sys.exit('changed')
PROGRAM
# seen: nova 34.0.0
# seen: bytes given: {'ascii': 300, 'umlauts': 400}
# seen: bytes kept: {'ascii': 255, 'umlauts': 254}
