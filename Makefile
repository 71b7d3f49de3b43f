# "make demo" and "make test" install what they need. Requires Python 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Knows what each target of tests runs, and how. Tests that run make themselves
# must not inherit its variables.
RUN_TESTS = env -u MAKEFLAGS -u MFLAGS ENVIRONMENTS=$(VENV) \
    $(TESTS_BIN)/python tools/run_tests.py
TESTS_BIN = $(BIN)
# A minimal environment for releases, in which no missing requirement is hidden.
RELEASE_VENV ?= .venv-release
RELEASE_BIN = $(RELEASE_VENV)/bin

# The control plane of released packages: its environment and its files.
CLOUD_VENV ?= .venv-cloud
# Clients of services that it does not have.
export CLIENTS_VENV ?= $(CURDIR)/.venv-clients
# Tools with which operators change clouds.
export OPERATOR_VENV ?= $(CURDIR)/.venv-operator
# Their folders as make needs them: in the name of a target, a space ends it.
escaped = $(subst $() ,\ ,$(1))
CLIENTS = $(call escaped,$(CLIENTS_VENV))/.clients
OPERATOR = $(call escaped,$(OPERATOR_VENV))/.operator
E2E_STATE ?= $(CURDIR)/.cloud
export E2E_STATE
CONTROL_PLANE = PYTHONPATH=tests/e2e $(CLOUD_VENV)/bin/python -m control_plane

TESTS = test test-rest test-gate test-all cover test-nova test-blazar \
    test-browser test-databases test-servers test-clone test-rehearsals
.PHONY: help demo environments unit $(TESTS) e2e e2e-smoke cloud cloud-down release-check audit-dependencies first-hour container dist sbom lint docs man linkcheck findings sample architecture clean

help:
	@echo "make demo   run the main job on an embedded Placement"
	@echo "make unit   run the tests that need no other program: seconds"
	@echo "make test   run these, those with a Placement in the process, and"
	@echo "            enough of each part with real programs: minutes"
	@echo "make test-rest   run what make test leaves out"
	@echo "make test-gate   run what of that each change has to pass"
	@echo "make test-all    run all tests"
	@echo "make test-nova   run the part with a real nova-scheduler alone"
	@echo "make test-blazar   run the part with a real blazar-manager alone"
	@echo "make test-browser   run the part with a real Chromium alone"
	@echo "make test-databases   run the part with MariaDB and PostgreSQL alone"
	@echo "make test-servers   run the part with web servers and Prometheus alone"
	@echo "make test-rehearsals   run the part with Ansible and clients alone"
	@echo "make test-clone   run the part that works in a copy of the clone alone"
	@echo "make cover  run all tests and see which lines they run"
	@echo "            each of these takes ARGS for pytest: ARGS='-k sync'"
	@echo "make cloud   bring up an OpenStack of released packages, to try things"
	@echo "make cloud-down   bring it down again"
	@echo "make first-hour   paste the lines of README on a fresh Debian"
	@echo "make container   build the container image without a registry, and start it"
	@echo "make e2e    play stories on it, and bring it down if it was"
	@echo "make release-check   build twice, install with oldest and newest versions"
	@echo "make audit-dependencies   look for known vulnerabilities; needs a network"
	@echo "make dist   build what is uploaded"
	@echo "make sbom   list what is installed with it"
	@echo "make lint   check style, types and architecture"
	@echo "make docs   build documentation and release notes"
	@echo "make man    write the manual pages of the commands anew"
	@echo "make linkcheck   build them, and see that their links lead somewhere"
	@echo "make findings   try the programs in findings; needs a network"
	@echo "make sample write the sample configuration and the JSON schemas anew"
	@echo "make architecture   make the images and tables of the documentation anew"
	@echo "make clean  remove what these made"

# "pip install ." installs a copy of the package, which tests would then use. So
# any installation other than this clone is replaced.
ORIGIN = $(VENV)/lib/python3*/site-packages/isolate_aggregates-*.dist-info/direct_url.json
HERE := $(shell pwd | sed 's|[^A-Za-z0-9._/-]|.*|g')
REPLACED := $(shell grep -qs '"file://$(HERE)"' $(ORIGIN) && \
    grep -qs '"editable": *true' $(ORIGIN) || echo replaced)
.PHONY: replaced

# The other distributions of this clone.
TOOLS = isolate-aggregates-tools
RESERVATIONS = isolate-aggregates-reservations
REQUIREMENTS = pyproject.toml $(foreach folder,. $(TOOLS) $(RESERVATIONS), \
    $(folder)/requirements.txt $(folder)/setup.cfg)
# What the tests of the tools need, and those of reservations, too.
TESTED_TOOLS = ./$(TOOLS)[embedded,junit,metrics,osc,progress,room,testing,test]

# One stamp file per set of extras, rebuilt when the requirements change.
$(VENV)/.demo: WANTED = '.' './$(TOOLS)[embedded]' './$(RESERVATIONS)'
$(VENV)/.all: WANTED = '.[unit,test,doc]' '$(TESTED_TOOLS)' \
    './$(RESERVATIONS)[blazar,test]'
$(VENV)/.all: OTHERS = $(VENV)/.demo
# Environments with a distribution and what it and its tests require.
$(VENV)-plugin/.all: WANTED = '.[metrics,unit]'
$(VENV)-tools/.all: WANTED = '.' '$(TESTED_TOOLS)'
$(VENV)-reservations/.all: WANTED = '.' '$(TESTED_TOOLS)' \
    './$(RESERVATIONS)[test]'
ALONE = $(VENV)-plugin/.all $(VENV)-tools/.all $(VENV)-reservations/.all
$(VENV)/.demo $(VENV)/.all: $(REPLACED)
$(VENV)/.demo $(VENV)/.all $(ALONE): $(REQUIREMENTS)
	@echo "Installing this clone into $(@D)."
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --upgrade pip
	$(@D)/bin/python -m pip install --quiet $(foreach one,$(WANTED),--editable $(one))
	touch $@ $(OTHERS)

# All services share an environment with the package and its tests.
$(CLOUD_VENV)/.cloud: $(REQUIREMENTS) tests/e2e/requirements.txt
	$(PYTHON) -m venv $(CLOUD_VENV)
	$(CLOUD_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(CLOUD_VENV)/bin/python -m pip install --quiet \
	    --requirement tests/e2e/requirements.txt --editable '.[metrics]' \
	    --editable './$(TOOLS)[osc,metrics]' --editable ./$(RESERVATIONS)
	touch $@

$(CLIENTS): tests/e2e/client-requirements.txt
	$(PYTHON) -m venv "$(CLIENTS_VENV)"
	"$(CLIENTS_VENV)"/bin/python -m pip install --quiet --upgrade pip
	"$(CLIENTS_VENV)"/bin/python -m pip install --quiet --requirement $<
	touch "$@"

$(OPERATOR): tests/rehearsals/requirements.txt
	$(PYTHON) -m venv "$(OPERATOR_VENV)"
	"$(OPERATOR_VENV)"/bin/python -m pip install --quiet --upgrade pip
	"$(OPERATOR_VENV)"/bin/python -m pip install --quiet --requirement $<
	touch "$@"

$(RELEASE_VENV)/.release: $(REQUIREMENTS)
	$(PYTHON) -m venv $(RELEASE_VENV)
	$(RELEASE_BIN)/python -m pip install --quiet --upgrade pip
	$(RELEASE_BIN)/python -m pip install --quiet --editable '.[release]'
	touch $@

demo: $(VENV)/.demo
	@BIN=$(BIN) sh examples/demo.sh

# All that the tests run in.
environments: $(VENV)/.all $(ALONE)
test test-all: $(ALONE)
$(TESTS): $(VENV)/.all
# With all three, and nothing of Nova.
unit: $(VENV)-reservations/.all
unit: TESTS_BIN = $(VENV)-reservations/bin
test-rest test-all test-rehearsals cover: $(OPERATOR)
# In environments of their own; the first takes long. The last checks the
# committed state.
e2e e2e-smoke: $(CLOUD_VENV)/.cloud
e2e: $(CLIENTS)
e2e e2e-smoke: TESTS_BIN = $(CLOUD_VENV)/bin
release-check: $(RELEASE_VENV)/.release
release-check: TESTS_BIN = $(RELEASE_BIN)
# The part of the tests that a target names.
PART = $(subst e2e-,e2e:,$(@:test-%=%))
release-check: PART = release
unit e2e e2e-smoke release-check $(TESTS):
	$(RUN_TESTS) $(PART) -- $(ARGS)

cloud: $(CLOUD_VENV)/.cloud
	$(CONTROL_PLANE) up

cloud-down:
	if [ -e $(CLOUD_VENV)/.cloud ]; then $(CONTROL_PLANE) down; fi

# Needs a network, mmdebstrap and the superuser.
first-hour:
	$(PYTHON) tools/first_hour.py

# Needs a network, mmdebstrap, buildah and the superuser.
container: $(VENV)/.all
	rm -rf build/wheels
	$(BIN)/python -m pip wheel --quiet --wheel-dir build/wheels \
	    . './$(TOOLS)[metrics]' ./$(RESERVATIONS) pip
	tools/container.sh build/wheels

# For the newest versions. Fails if a package could not be looked up.
audit-dependencies: $(RELEASE_VENV)/.release
	mkdir -p build
	$(RELEASE_BIN)/python tools/extras.py --requirements > build/wanted.in
	$(RELEASE_BIN)/uv pip compile --quiet \
	    --output-file build/newest.txt build/wanted.in
	$(RELEASE_BIN)/pip-audit --strict --no-deps --disable-pip \
	    --requirement build/newest.txt

# The result is reproducible.
dist: $(RELEASE_VENV)/.release
	rm -rf dist
	for folder in . $(TOOLS) $(RESERVATIONS); do \
	    SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) \
	    $(RELEASE_BIN)/python -m build --installer uv --outdir dist "$$folder" \
	    || exit; \
	done

sbom: dist
	rm -rf build/sbom
	$(RELEASE_BIN)/uv venv --quiet build/sbom
	$(RELEASE_BIN)/uv pip install --quiet --python build/sbom/bin/python \
	    "./$$(ls dist/isolate_aggregates-*.whl)[$$($(RELEASE_BIN)/python \
	        tools/extras.py isolate-aggregates)]" \
	    "./$$(ls dist/isolate_aggregates_tools-*.whl)[$$($(RELEASE_BIN)/python \
	        tools/extras.py isolate-aggregates-tools)]" \
	    "./$$(ls dist/isolate_aggregates_reservations-*.whl)[$$($(RELEASE_BIN)/python \
	        tools/extras.py isolate-aggregates-reservations)]"
	$(RELEASE_BIN)/cyclonedx-py environment --output-reproducible \
	    --output-file dist/isolate-aggregates.cdx.json \
	    build/sbom/bin/python

lint: $(VENV)/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.all
	$(BIN)/python tools/drawings.py --check
	$(BIN)/sphinx-build -W --keep-going -b html doc/source doc/build/html
	$(BIN)/sphinx-build -W -b html releasenotes/source releasenotes/build/html

man: $(VENV)/.all
	$(BIN)/python tools/man_pages.py

linkcheck: docs
	$(BIN)/python tools/links.py doc/build/html releasenotes/build/html

# What packages of others do, each in an environment of its own.
findings:
	@tools/run_findings.sh $(ARGS)

sample: $(VENV)/.all
	$(BIN)/oslo-config-generator \
	    --config-file etc/isolate-aggregates/config-generator.conf
	$(BIN)/python tools/json_schemas.py

architecture: $(VENV)/.all
	$(BIN)/python tools/drawings.py

clean: cloud-down
	rm -rf $(VENV) $(VENV)-* $(CLOUD_VENV) "$(CLIENTS_VENV)" "$(OPERATOR_VENV)" build dist doc/build releasenotes/build *.egg-info */*.egg-info
