# `make` alone lists the targets. Nothing but Go, make, gcc and git is needed:
# tools and the test control plane are built from pinned modules into bin/.

# ---------------------------------------------------------------- versions
# Of the tools: hack/tools/go.mod and hack/golangci-lint/go.mod.
# Of the test control plane: here, and in hack/controlplane/go.mod.
K8S_VERSION ?= 1.37.1
VERSION     ?= $(or $(shell git describe --tags --always --dirty 2>/dev/null),unknown)

# ---------------------------------------------------------------- settings
# The folder of `make run`.
RUN_DIR ?= .stowage
# What `make deploy` installs: default (beside kube-controller-manager) or standalone; and what `make e2e` installs, one
# after the other, each in a cluster of its own.
OVERLAY  ?= default
OVERLAYS ?= default standalone
# What `make test` tests: everything, with what takes longest first, so that the end is short tests which keep all processors
# busy. And further flags for go test.
PACKAGES  ?= ./test/integration ./internal/nodemanager ./controllers ./cmd/node-agent ./internal/node/localdisk/volumeagent \
	./test/config ./test/docs ./internal/nodemanager/volumes/csi ./...
TESTFLAGS ?=
# What `make test-race` tests: where goroutines share memory.
RACE_PACKAGES ?= ./internal/backend/... ./internal/binder ./internal/sharedread ./internal/keyed ./internal/event ./internal/csi \
	./internal/nodemanager ./internal/nodemanager/metrics ./internal/nodemanager/operations \
	./internal/gcemock/... ./test/integration
# What it leaves to `make test`: the kill matrix, whose processes are too short for the detector; calls that are interrupted at each
# of their steps, or refused in each way, and large trees that are inspected, each by one goroutine.
RACE_SKIP ?= NodeManagerThatIsKilled|PodThatGoesAfterAKill|InterruptedAnywhere|InspectionOfManyCalls|InspectionContinuesWhere|WhereverACallWasCutOff|RefusalHasItsKindAndARepeat|OperationThatFailsHasItsKindAndARepeat|ManyEarlierFailuresArePassed|ManyFilesIsRemovedInSlices|FullShareNoCopyIsComplete|NoMoreRecordsThanFitInMemory|TextsThatNeverRepeat
# How often `make kill-matrix` and `make flakes` run, and what the latter makes.
RUNS      ?= 1
TARGET    ?= test
# Which specs the targets `e2e` and `e2e-…` run: a regular expression of their names, and a
# filter of Ginkgo's labels, such as 'volumes && !slow'; and whether the cluster of `make e2e`
# stays after them; and whether overlay default gets Google's CSI driver, too, and there is the story
# of Velero. Each takes minutes to build. STORIES is the earlier name of SPECS.
SPECS     ?= $(STORIES)
LABELS    ?=
STAY      ?=
CSI       ?=
VELERO    ?=
# Archives of images, as `docker save` writes them, that the nodes of `make e2e` and
# `make e2e-upstream` have, too.
IMAGES    ?=
export STOWAGE_E2E_IMAGES = $(abspath $(IMAGES))
# What `make e2e-upgrade` upgrades a node from: the last commit before packages moved, so that drivers stage and publish on
# nodes without a kubelet, too. It mounts volumes in the earlier layout of docs/decisions/one-stage.md.
UPGRADE_FROM ?= 1b9e95cd1c03378ca8cafbac82f45c9bf2856421
# What `make e2e-upstream` runs: all, or ci, which takes eight minutes at most. FOCUS is an
# expression of names that narrows it, and `make integration-upstream`; SKIPPED=yes has the
# latter play what it is expected to skip, too.
UPSTREAM  ?= all
FOCUS     ?=
SKIPPED   ?=
# Whether `make clean-machine` removes nothing.
DRYRUN    ?=
# Flags of `make bench`.
BENCHFLAGS ?=
# Names and architectures of the images that are built, and those that `make deploy` installs.
REGISTRY  ?= ghcr.io/stowage-dev
ARCHS     ?= amd64 arm64
# Systems and architectures that `make plugins` builds the kubectl plug-in for.
PLUGIN_MACHINES ?= linux-amd64 linux-arm64 darwin-amd64 darwin-arm64 windows-amd64
IMG       ?= $(REGISTRY)/stowage-manager:$(VERSION)
AGENT_IMG ?= $(REGISTRY)/stowage-node-agent:$(VERSION)

# ---------------------------------------------------------------- internals
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help
# Every program is static, so that guests can run it, and all are compiled with the same
# libraries. Only the race detector needs cgo.
export CGO_ENABLED := 0
# Without paths in them, compiled packages serve every checkout. Without what debuggers need, linkers have less to read: a
# sixth of their time. `go build ./cmd/manager` makes a program for a debugger.
COMPILE := -trimpath -gcflags=all=-dwarf=false
# Without the pages that gRPC serves of its requests. They need templates, which may call any method by its name, so linkers
# could leave out none: the agent would be 13 MB larger, and have 10 MB more in RAM.
export GOFLAGS := $(GOFLAGS) $(COMPILE) -tags=grpcnotrace

# The kernel of guests, which need.sh puts there. Where it is empty, they run the machine's own, which is older.
export STOWAGE_UML := $(CURDIR)/bin/uml

K8S_BIN    := bin/k8s/$(K8S_VERSION)
VELERO_MODULE := github.com/vmware-tanzu/velero
GCE_DRIVER := sigs.k8s.io/gcp-compute-persistent-disk-csi-driver
EARLIER    := bin/upgrade/$(UPGRADE_FROM)
KUBECTL    ?= $(or $(shell command -v kubectl 2>/dev/null),$(K8S_BIN)/kubectl)
MODULES    := . hack/controlplane hack/images hack/tools hack/golangci-lint hack/upstream hack/gcedriver hack/sidecars hack/velero test/chart
GO_BUILD   := go build -buildvcs=false
# A test bed learns from the linker which checkout it is of.
CHECKOUT   := -X github.com/stowage-dev/stowage/test/harness/apiserver.repository=$(CURDIR)
GO_TEST    := go test -ldflags '$(CHECKOUT)'
# A suite is a static program: guests run it as their first process. Its arguments are Ginkgo's.
BUILD_SUITE := $(GO_TEST) -c -o bin/test/e2e/
SELECTED    = $(if $(SPECS),--focus='$(SPECS)') $(if $(LABELS),--label-filter='$(LABELS)')
# A cluster that stays has a last spec, which is always chosen; specs one by one are seen as they run.
STAYING     = $(if $(STAY),--procs=1 $(if $(SPECS),--focus='the cluster stays') $(if $(LABELS),--label-filter='($(LABELS)) || stay'))
comma := ,
space := $(subst ,, )
# What a release has is the same each time: nothing in it has the time at which it was made.
CREATED    ?= $(shell TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ 2>/dev/null)
PACK       := tar --sort=name --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=go=rX
HAS_IMAGES := $(filter command environment,$(origin IMG))
# Makes a template of Helm of what kustomize built: placeholders lose their quotes, and values replace paths.
TEMPLATE   := sed -z "s/'\([^']*{{[^']*}}\)'/\1/g" | sed 's|/var/lib/kubelet$$|{{ .Values.kubeletDir }}|; s|/var/lib/stowage$$|{{ .Values.localBase }}|'
LINK_FLAGS := -X github.com/stowage-dev/stowage/internal/program.version=$(VERSION)

##@ Develop

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "; print "Usage: make <target>"} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' Makefile

.PHONY: build
build: ## Build bin/manager, bin/node-agent with bin/stowage-mount, bin/gce-mock, and bin/kubectl-stowage.
	$(GO_BUILD) -ldflags '$(LINK_FLAGS)' -o bin/ ./cmd/...

.PHONY: generate
generate: bin/controller-gen bin/crd-ref-docs ## Write deep copies, CRDs, RBAC roles, docs/api.md and docs/volumes.md from the code.
	@hack/generate.sh

.PHONY: fmt
fmt: bin/golangci-lint ## Format the code.
	bin/golangci-lint fmt ./...

.PHONY: vet
vet: ## Let go vet look for mistakes.
	go vet ./...

.PHONY: lint
lint: bin/golangci-lint ## Lint the code.
	bin/golangci-lint run --allow-parallel-runners ./...
	cd hack/images && ../../bin/golangci-lint run --allow-parallel-runners --config ../../.golangci.yml ./...

.PHONY: verify
verify: bin/controller-gen bin/crd-ref-docs ## Check that generated files, formatting and modules are up to date.
	@hack/verify.sh $(MODULES)

##@ Test

.PHONY: test
test: controlplane bin/gotestsum bin/kustomize ## Run all tests: unit, API server, and (as root) real mounts and loop devices. PACKAGES and TESTFLAGS narrow it.
	@go -C hack/images test ./...
	@go -C hack/upstream test .
	@go -C hack/benchpage test .
	@go -C test/chart test -count=1 .
	@hack/test.sh $(TESTFLAGS) $(PACKAGES)

bin/promtool: ## Prometheus' own tool, of Debian's package, with which `make test` makes each alert fire.
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && cd "$$folder" && \
	{ apt-get download -qq prometheus 2>/dev/null || { apt-get update -qq && apt-get download -qq prometheus; }; } && \
	dpkg -x prometheus_*.deb . && install -D usr/bin/promtool '$(CURDIR)/bin/promtool'

.PHONY: test-race
test-race: controlplane bin/gotestsum ## Run the tests of RACE_PACKAGES under the race detector, but for those of RACE_SKIP. RACE_PACKAGES=./... RACE_SKIP=none TESTFLAGS=-timeout=90m takes all of them.
	@CGO_ENABLED=1 hack/test.sh -race -skip '$(RACE_SKIP)' $(TESTFLAGS) $(RACE_PACKAGES)

.PHONY: fuzz
fuzz: ## Fuzz each parser of what pods, users, servers and disks wrote, FUZZTIME each (30s). PACKAGES narrows it. `make test` plays the seeds.
	@hack/fuzz.sh

.PHONY: flakes
flakes: ## Make TARGET until it fails, at most RUNS times (0: no limit). PACKAGES, TESTFLAGS and SPECS narrow it as they do the target.
	@hack/flakes.sh '$(TARGET)' '$(if $(filter file,$(origin RUNS)),0,$(RUNS))'

.PHONY: test-stock
test-stock: build controlplane-whole ## Test Stowage beside the real kube-controller-manager and kube-scheduler, and the hand-over to --scope=cluster and back. Needs root.
	@STOWAGE_TEST_STOCK=1 GINKGO_NO_COLOR=TRUE $(GO_TEST) -timeout 20m ./test/stock -ginkgo.label-filter='!sidecars'

.PHONY: test-sidecars
test-sidecars: build controlplane bin/csi-mock-driver bin/csi-provisioner bin/csi-attacher bin/csi-resizer bin/snapshot-controller bin/csi-snapshotter ## Hand a CSI driver over from the real external-provisioner, -attacher and -resizer to Stowage, and back; restore a snapshot beside the real snapshot-controller, and go on without it. Needs root.
	@hack/controlplane/build.sh $(K8S_VERSION) $(K8S_BIN) kube-controller-manager
	@hack/controlplane/build.sh $(K8S_VERSION) $(K8S_BIN) kube-scheduler
	@STOWAGE_TEST_STOCK=1 GINKGO_NO_COLOR=TRUE $(GO_TEST) -count=1 -timeout 10m $(TESTFLAGS) ./test/stock -ginkgo.label-filter=sidecars

.PHONY: test-sanity
test-sanity: build controlplane bin/ginkgo ## csi-sanity, the conformance tests of CSI, for each driver and kind of volume, with real mounts. Needs root; installs Debian packages.
	@hack/need.sh guests filesystems
	@$(BUILD_SUITE) ./test/e2e/sanity
	@exec bin/test/e2e/sanity.test run $(SELECTED)

.PHONY: test-gce-mock
test-gce-mock: bin/gce-pd-csi-driver controlplane ## Google's own CSI driver, unmodified, with gce-mock as its cloud: csi-sanity's controller specs for each kind of disk, and Stowage in place of its sidecars.
	@$(GO_BUILD) -ldflags '$(LINK_FLAGS)' -o bin/ ./cmd/gce-mock ./cmd/manager
	@STOWAGE_TEST_GCE_DRIVER='$(CURDIR)/bin' $(GO_TEST) -count=1 -v -timeout 10m $(TESTFLAGS) ./test/gcedriver

.PHONY: kill-matrix
kill-matrix: ## Kill a node manager before each step of its work, with each type of volume, RUNS times. Needs root. `make test` takes a sample.
	@hack/need.sh filesystems
	@for run in $$(seq $(RUNS)); do echo "run $$run of $(RUNS)"; STOWAGE_KILL_STRIDE=1 $(GO_TEST) -count=1 -timeout 60m -run 'TestANodeManagerThatIsKilled|TestOfAPodThatGoesAfterAKill' ./internal/nodemanager; done

.PHONY: demo
demo: build controlplane ## Watch the whole life of a volume, explained and checked, on this machine.
	@mkdir -p bin/test
	@$(GO_TEST) -c -o bin/demo ./test/e2e/demo
	@STOWAGE_TEST_DEMO=1 exec bin/demo -test.timeout=20m -ginkgo.junit-report=bin/test/demo.xml

.PHONY: e2e-nfs
e2e-nfs: build controlplane bin/ginkgo ## A whole Stowage with NFS volumes on two nodes, User Mode Linux guests; servers stop, hang and start. SPECS and LABELS narrow it. Needs root; installs Debian packages.
	@hack/need.sh guests
	@$(BUILD_SUITE) ./test/e2e/nfs
	@exec bin/test/e2e/nfs.test run $(SELECTED)

.PHONY: e2e-local
e2e-local: export STOWAGE_UML :=
e2e-local: bin/ginkgo ## Tests of local volumes that need another kernel than the machine's, for quotas and growth, in a User Mode Linux guest. Needs root; installs Debian packages.
	@hack/need.sh guests filesystems
	@rm -rf bin/test/e2e-local && mkdir -p bin/test/e2e-local
	@$(GO_TEST) -c -o bin/test/e2e-local/ ./internal/quota ./internal/device/clouddisk ./internal/device/filesystem ./internal/device/loopdev ./internal/nodemanager/volumes/csi ./internal/nodemanager/volumes/emptydir ./internal/node/localdisk/store ./internal/mount/filetree ./internal/duplicate
	@$(BUILD_SUITE) ./test/e2e/guest
	@STOWAGE_E2E_TARGET=e2e-local exec bin/test/e2e/guest.test run $(SELECTED)

.PHONY: e2e-node
e2e-node: export STOWAGE_UML :=
e2e-node: controlplane bin/ginkgo ## All tests of the node side, in a User Mode Linux guest, whose mount table they may break. Needs root; installs Debian packages.
	@hack/need.sh guests filesystems
	@rm -rf bin/test/e2e-node && mkdir -p bin/test/e2e-node
	@$(GO_TEST) -c -o bin/test/e2e-node/ ./internal/mount ./internal/mount/safepath ./internal/mount/filetree ./internal/mount/remote ./internal/device/clouddisk ./internal/device/filesystem ./internal/device/loopdev ./internal/ownership ./internal/nodemanager $$(go list ./internal/nodemanager/volumes/... | grep -E '/(volumes|apidata|atomicdir|csi|emptydir|hostpath|inlinenfs|local|nfs)$$') ./internal/nodemanager/poddir ./internal/nodemanager/subpath ./internal/node/localdisk/store ./internal/node/localdisk/volumeagent
	@$(BUILD_SUITE) ./test/e2e/guest
	@STOWAGE_E2E_TARGET=e2e-node exec bin/test/e2e/guest.test run $(SELECTED)

.PHONY: e2e-attach
e2e-attach: build controlplane bin/gce-pd-csi-driver bin/ginkgo ## A whole Stowage with disks of gce-mock, plugged into two nodes, User Mode Linux guests; nodes die, programs are killed, the cloud fails. SPECS and LABELS narrow it. Needs root; installs Debian packages.
	@hack/need.sh guests
	@$(BUILD_SUITE) ./test/e2e/attach
	@exec bin/test/e2e/attach.test run $(SELECTED)

.PHONY: e2e-upgrade
e2e-upgrade: build controlplane bin/ginkgo ## A node without a kubelet is upgraded from UPGRADE_FROM while its pods run, in a User Mode Linux guest: the programs of both commits, volumes of every driver. Needs root and that commit in git's history; installs Debian packages.
	@hack/need.sh guests
	@if git cat-file -e '$(UPGRADE_FROM)^{commit}' 2>/dev/null; then \
		$(MAKE) $(EARLIER); $(BUILD_SUITE) ./test/e2e/upgrade; \
		STOWAGE_UPGRADE_FROM='$(CURDIR)/$(EARLIER)' bin/test/e2e/upgrade.test run $(SELECTED); \
	else \
		echo "e2e-upgrade: SKIPPED: git's history here doesn't have commit $(UPGRADE_FROM): get it with git fetch --unshallow"; \
	fi

# The programs and the configuration of the commit that `make e2e-upgrade` upgrades from.
$(EARLIER):
	@rm -rf bin/upgrade && mkdir -p $@.new
	@git archive '$(UPGRADE_FROM)' api cmd config controllers internal go.mod go.sum | tar -x -C $@.new
	@cd $@.new && $(GO_BUILD) -o bin/ ./cmd/manager ./cmd/node-agent ./cmd/stowage-mount
	@mv $@.new $@

.PHONY: e2e-kubelet
e2e-kubelet: controlplane-whole image-archives bin/ginkgo ## The nodes of end-to-end tests with pods that run, without Stowage: containerd and a kubelet on this machine and in two User Mode Linux guests. SPECS and LABELS narrow it. Needs root; installs Debian packages.
	@hack/need.sh guests nodes
	@$(BUILD_SUITE) ./test/e2e/nodes
	@exec bin/test/e2e/nodes.test run $(SELECTED)

.PHONY: e2e
e2e: build controlplane-whole image-archives $(if $(CSI),bin/gce-pd-csi-driver) $(if $(VELERO),bin/velero bin/snapshot-controller) bin/kustomize bin/ginkgo ## Stowage as each of OVERLAYS installs it, in a Kubernetes with three real nodes: pods write and read. SPECS and LABELS narrow it; CSI=yes and VELERO=yes add those of e2e-csi and e2e-velero; STAY=yes keeps the first cluster until Ctrl-C. Needs root; installs Debian packages.
	@hack/need.sh guests nodes
	@$(if $(CSI),bin/images/archive -programs bin -image gce-pd-csi-driver)
	@$(if $(VELERO),bin/images/archive -programs bin -image velero)
	@$(BUILD_SUITE) ./test/e2e/cluster
	@for overlay in $(if $(STAY),$(firstword $(OVERLAYS)),$(OVERLAYS)); do STOWAGE_E2E_OVERLAY=$$overlay STOWAGE_E2E_CSI='$(CSI)' STOWAGE_E2E_VELERO='$(VELERO)' STOWAGE_E2E_STAY='$(STAY)' bin/test/e2e/cluster.test run $(SELECTED) $(STAYING); done

.PHONY: e2e-csi
e2e-csi: ## A pod on a stock kubelet uses a disk of Google's own CSI driver through Stowage alone, on the nodes of make e2e. Needs root; installs Debian packages.
	@$(MAKE) e2e CSI=yes OVERLAYS=default SPECS= LABELS=csi

.PHONY: e2e-velero
e2e-velero: ## Velero backs up, and restores, what pods wrote, as docs/operate/backup.md says: with snapshots, file by file, and by the data mover; on the nodes of make e2e, with each of OVERLAYS. Needs root; installs Debian packages.
	@$(MAKE) e2e VELERO=yes SPECS= LABELS=velero

.PHONY: integration-upstream
integration-upstream: build controlplane ## Kubernetes' own integration tests of PersistentVolumes, with --scope=cluster in place of its controller. FOCUS narrows it, such as volume/TestPersistentVolumeDeleter; SKIPPED=yes plays what hack/upstream/skips.txt has.
	@$(GO_BUILD) -o bin/cleanmachine ./hack/cleanmachine
	@bin/cleanmachine go -C hack/upstream run . --repository '$(CURDIR)' --programs '$(CURDIR)/$(K8S_BIN)' --run '$(FOCUS)' $(if $(SKIPPED),--skipped)

.PHONY: tables-upstream
tables-upstream: controlplane ## Play the tables of Kubernetes' own controller of PersistentVolumes with Stowage's reconcilers. FOCUS narrows it, such as TestSync/1-1; controllers/testdata/upstream.txt has the rows that don't hold.
	@mkdir -p bin/upstream
	@go -C hack/upstream run . --repository '$(CURDIR)' --programs '$(CURDIR)/$(K8S_BIN)' --tables '$(CURDIR)/bin/upstream/tables.jsonl'
	@STOWAGE_UPSTREAM_TABLES='$(CURDIR)/bin/upstream/tables.jsonl' $(GO_TEST) -v -count=1 -timeout 20m ./controllers -run '^TestControllers$$' -ginkgo.focus="Upstream's tables $(FOCUS)"

.PHONY: e2e-upstream
e2e-upstream: build controlplane-whole upstream-images bin/kustomize bin/snapshot-controller bin/ginkgo ## Kubernetes' own end-to-end tests of storage, against Stowage as each of OVERLAYS installs it. UPSTREAM=ci is a selection, FOCUS narrows it; STAY=yes keeps the first cluster until Ctrl-C. Needs root; installs Debian packages.
	@hack/need.sh guests nodes
	@$(BUILD_SUITE) ./test/e2e/upstream
	@for overlay in $(if $(STAY),$(firstword $(OVERLAYS)),$(OVERLAYS)); do STOWAGE_E2E_OVERLAY=$$overlay STOWAGE_UPSTREAM='$(UPSTREAM)' STOWAGE_UPSTREAM_FOCUS='$(FOCUS)' STOWAGE_E2E_STAY='$(STAY)' bin/test/e2e/upstream.test run $(SELECTED); done

.PHONY: e2e-upstream-check
e2e-upstream-check: upstream-programs ## Check that every entry of test/e2e/upstream's lists matches specs. Needs no cluster.
	@$(GO_TEST) -count=1 -v -run TestTheListsMatch ./test/e2e/upstream

.PHONY: bench
bench: build controlplane-whole bin/csi-mock-driver bin/csi-provisioner ## Measure against bare API writes, and against external-provisioner, with targets, and plots in bin/bench.html. BENCHFLAGS such as '--n 10000'; --help lists them.
	@$(GO_BUILD) -ldflags '$(LINK_FLAGS) $(CHECKOUT)' -o bin/bench ./test/bench
	@touch bin/bench.begun; status=0; bin/bench $(BENCHFLAGS) || status=$$?; \
	for run in bench bench-quick; do \
		if [[ bin/$$run.json -nt bin/bench.begun ]]; then go -C hack/benchpage run . --results "$(CURDIR)/bin/$$run.json" --earlier '$(CURDIR)/docs/benchmarks' --to "$(CURDIR)/bin/$$run.html"; fi; \
	done; \
	exit $$status

.PHONY: bench-quick
bench-quick: override BENCHFLAGS := --quick $(BENCHFLAGS)
bench-quick: bench ## The small part of `make bench`, in five minutes at most once all is built, with plots in bin/bench-quick.html.

##@ Run

.PHONY: run
run: build controlplane ## Run a control plane, the manager and the node agent here, in RUN_DIR, until Ctrl-C.
	@$(GO_BUILD) -ldflags '$(CHECKOUT)' -o bin/run ./hack/run
	@exec bin/run --dir '$(RUN_DIR)'

.PHONY: clean-run
clean-run: ## Remove what `make run` left in RUN_DIR, with all volumes in it.
	@$(GO_BUILD) -ldflags '$(CHECKOUT)' -o bin/run ./hack/run
	@exec bin/run --dir '$(RUN_DIR)' --clean

##@ Deploy to the cluster of KUBECONFIG

.PHONY: install
install: bin/kustomize ## Install the CRDs.
	bin/kustomize build config/crd | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: bin/kustomize ## Remove the CRDs, once no StorageBackend and no NodeVolume is left.
	@left=$$($(KUBECTL) get storagebackends,nodevolumes -o name --ignore-not-found 2>/dev/null || true); \
	if [[ -n $$left ]]; then \
		echo "These are still there. Delete the claims that use them, then them:"; echo "$$left"; exit 1; \
	fi
	bin/kustomize build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: bin/kustomize ## Install Stowage with the images IMG and AGENT_IMG. OVERLAY=default: beside kube-controller-manager; standalone: instead of its volume controllers.
	@$(call stamp,config/$(OVERLAY),$(IMG),$(AGENT_IMG))
	bin/kustomize build bin/stamped | $(KUBECTL) apply --server-side -f -
	@$(KUBECTL) get crd volumesnapshotcontents.snapshot.storage.k8s.io >/dev/null 2>&1 || \
		echo 'No snapshots yet: the cluster lacks the CRDs of snapshot.storage.k8s.io/v1. docs/operate/snapshots.md says where they are; they may come later.'

.PHONY: undeploy
undeploy: bin/kustomize ## Remove the manager and the node agents. CRDs, StorageBackends, volumes and their data stay.
	bin/kustomize build config/$(OVERLAY) | $(KUBECTL) delete --ignore-not-found --timeout=3m -l app.kubernetes.io/name=stowage -f -

.PHONY: images
images: ## Build the container images, with docker.
	docker build --build-arg VERSION=$(VERSION) --target manager -t $(REGISTRY)/stowage-manager:$(VERSION) .
	docker build --build-arg VERSION=$(VERSION) --target node-agent -t $(REGISTRY)/stowage-node-agent:$(VERSION) .
	docker build --build-arg VERSION=$(VERSION) --target gce-mock -t $(REGISTRY)/stowage-gce-mock:$(VERSION) .

.PHONY: image-archives
image-archives: ## Write the images, and two for test pods, into bin/images, without docker: archives for `ctr -n k8s.io images import`.
	@hack/need.sh images
	@mkdir -p bin/images/programs
	@$(GO_BUILD) -trimpath -ldflags '-s -w -buildid= $(LINK_FLAGS)' -o bin/images/programs/ ./cmd/...
	@GOFLAGS='$(COMPILE)' go -C hack/images build -buildvcs=false -trimpath -ldflags '-s -w -buildid=' -o '$(CURDIR)/bin/images/programs/' ./pause
	@GOFLAGS='$(COMPILE)' go -C hack/images build -buildvcs=false -o '$(CURDIR)/bin/images/archive' .
	@bin/images/archive

.PHONY: images-buildx
images-buildx: ## Build the images for ARCHS with docker buildx, and push them to REGISTRY.
	@for image in manager node-agent gce-mock; do \
		docker buildx build --platform '$(subst $(space),$(comma),$(ARCHS:%=linux/%))' --provenance=false --build-arg VERSION=$(VERSION) \
			--target $$image -t $(REGISTRY)/stowage-$$image:$(VERSION) --push .; \
	done

.PHONY: images-oci
images-oci: ## Write the images for ARCHS and their SBOMs (SPDX) into dist, without docker: archives of OCI's layout, the same bytes each time.
	@rm -rf bin/images/layouts && mkdir -p bin/images dist
	@GOFLAGS='$(COMPILE)' go -C hack/images build -buildvcs=false -o '$(CURDIR)/bin/images/archive' .
	@$(foreach arch,$(ARCHS),$(call unpack,$(arch),bin/images/$(arch)); \
		GOARCH=$(arch) $(GO_BUILD) -trimpath -ldflags '-s -w -buildid= $(LINK_FLAGS)' -o bin/images/$(arch)/programs/ ./cmd/...;)
	@CREATED='$(CREATED)' bin/images/archive -out dist -prefix $(REGISTRY)/stowage- -release $(VERSION) $(ARCHS) | tee dist/images.txt
	@for image in manager node-agent gce-mock; do $(PACK) -C bin/images/layouts/$$image -cf dist/stowage-$$image.tar .; done

.PHONY: build-installer
build-installer: $(if $(HAS_IMAGES),,images-oci) bin/kustomize ## Write dist/install.yaml and dist/install-standalone.yaml, with VERSION and images by digest: those of images-oci, or IMG and AGENT_IMG.
	@mkdir -p dist; $(PINNED); \
		$(call stamp,config/default,$$manager,$$agent); bin/kustomize build bin/stamped >dist/install.yaml; \
		$(call stamp,config/standalone,$$manager,$$agent); bin/kustomize build bin/stamped >dist/install-standalone.yaml

.PHONY: chart
chart: $(if $(HAS_IMAGES),,images-oci) bin/kustomize ## Write the Helm chart of VERSION, made from the overlays, into bin/chart, and dist/stowage-VERSION.tgz.
	@rm -rf bin/chart; mkdir -p bin/chart/stowage/{crds,templates} dist; $(PINNED); \
		cp config/chart/values.schema.json config/chart/NOTES.txt bin/chart/stowage/; mv bin/chart/stowage/{,templates/}NOTES.txt; \
		sed 's|dev$$|$(VERSION:v%=%)|' config/chart/Chart.yaml >bin/chart/stowage/Chart.yaml; \
		sed "s|ghcr.io/.*/stowage-manager:dev|$$manager|; s|ghcr.io/.*/stowage-node-agent:dev|$$agent|" config/chart/values.yaml >bin/chart/stowage/values.yaml; \
		$(call stamp,config/crd,$$manager,$$agent); bin/kustomize build bin/stamped >bin/chart/stowage/crds/stowage.yaml; \
		bin/kustomize build config/chart | $(TEMPLATE) >bin/chart/stowage/templates/stowage.yaml; \
		{ echo '{{- if eq .Values.scope "cluster" }}'; bin/kustomize build config/chart/cluster | $(TEMPLATE); echo '{{- end }}'; } >bin/chart/stowage/templates/cluster.yaml; \
		$(PACK) -C bin/chart -cf - stowage | gzip -n >dist/stowage-$(VERSION:v%=%).tgz

.PHONY: plugins
plugins: ## Write the kubectl plug-in for PLUGIN_MACHINES into dist, as archives with the licence: the same bytes each time.
	@mkdir -p dist
	@for machine in $(PLUGIN_MACHINES); do \
		folder=bin/plugins/$$machine; rm -rf "$$folder"; mkdir -p "$$folder"; cp LICENSE "$$folder/"; \
		GOOS=$${machine%-*} GOARCH=$${machine#*-} $(GO_BUILD) -trimpath -ldflags '-s -w -buildid= $(LINK_FLAGS)' -o "$$folder/" ./cmd/kubectl-stowage; \
		$(PACK) -C "$$folder" -cf - . | gzip -n >"dist/kubectl-stowage-$$machine.tar.gz"; \
	done

.PHONY: release
release: bin/kustomize ## Write all that a release has into dist, such as VERSION=v0.1.0: images, SBOMs, manifests, chart, plug-ins, config, changelog and checksums.
	@[[ '$(VERSION)' =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$$ ]] || { echo 'release: VERSION is such as v0.1.0, not $(VERSION)' >&2; exit 1; }
	@rm -rf dist
	@$(MAKE) build-installer chart plugins
	@$(PACK) -cf - config | gzip -n >dist/stowage-config.tar.gz
	@last=$$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null || true); notes='[$(VERSION:v%=%)]'; \
		grep -qF "## $$notes" CHANGELOG.md || notes='[Unreleased]'; { echo '# Changes of $(VERSION)'"$${last:+ since $$last}"; \
		awk -v notes="$$notes" '/^## /{on = index($$0, notes); next} on' CHANGELOG.md; echo; echo '## Commits'; echo; \
		git log --no-merges --format='- %s (%h)' $${last:+$$last..} | sort; } >dist/CHANGELOG.md
	@cd dist; sha256sum -- * >checksums.txt

# The image of debian-base is that of the pods with which kube-controller-manager recycles volumes.
.PHONY: upstream-images
upstream-images: image-archives upstream-programs ## Write bin/images/upstream.tar: stand-ins for the images that Kubernetes' own end-to-end tests ask for.
	@cp $(K8S_BIN)/agnhost bin/images/programs/
	@{ $(K8S_BIN)/e2e.test --list-images; grep -oh 'registry.k8s.io/[a-z-]*/debian-base:[a-z0-9.-]*' "$$(go -C hack/controlplane list -m -f '{{.Dir}}' k8s.io/kubernetes)/pkg/volume/plugins.go"; } | sort >bin/images/upstream.txt
	@bin/images/archive -for bin/images/upstream.txt

##@ Tools

.PHONY: controlplane
controlplane: ## Put etcd, kube-apiserver and kubectl into bin/k8s. CONTROLPLANE=download fetches them instead of building.
	@hack/controlplane/build.sh $(K8S_VERSION) $(K8S_BIN)

.PHONY: controlplane-whole
controlplane-whole: controlplane ## Put kube-controller-manager, kube-scheduler and kubelet beside them: what a stock Kubernetes has.
	@for program in kube-controller-manager kube-scheduler kubelet; do \
		hack/controlplane/build.sh $(K8S_VERSION) $(K8S_BIN) $$program; \
	done

.PHONY: upstream-programs
upstream-programs: ## Put e2e.test, ginkgo and agnhost beside them: Kubernetes' own end-to-end tests.
	@for program in e2e.test ginkgo agnhost; do \
		hack/controlplane/build.sh $(K8S_VERSION) $(K8S_BIN) $$program; \
	done

.PHONY: tools
tools: bin/controller-gen bin/kustomize bin/gotestsum bin/ginkgo bin/crd-ref-docs bin/golangci-lint ## Build the tools into bin/.

.PHONY: clean-machine
clean-machine: ## Remove what tests left on this machine when they were killed; DRYRUN=yes lists it.
	@$(GO_BUILD) -o bin/cleanmachine ./hack/cleanmachine
	@bin/cleanmachine $(if $(DRYRUN),--dry-run)

.PHONY: clean
clean: ## Remove bin/. The control plane stays in your cache.
	rm -rf bin

bin/controller-gen: TOOL := sigs.k8s.io/controller-tools/cmd/controller-gen
bin/kustomize:      TOOL := sigs.k8s.io/kustomize/kustomize/v5
bin/gotestsum:      TOOL := gotest.tools/gotestsum
bin/ginkgo:         TOOL := github.com/onsi/ginkgo/v2/ginkgo
bin/crd-ref-docs:   TOOL := github.com/elastic/crd-ref-docs
bin/golangci-lint:  TOOL := github.com/golangci/golangci-lint/v2/cmd/golangci-lint

bin/controller-gen bin/kustomize bin/gotestsum bin/ginkgo bin/crd-ref-docs: hack/tools/go.mod hack/tools/go.sum
	@$(build-tool)

bin/golangci-lint: hack/golangci-lint/go.mod hack/golangci-lint/go.sum
	@$(build-tool)

# Its version is what `hack/gcedriver` pins; the driver ends at once without one.
bin/gce-pd-csi-driver: hack/gcedriver/go.mod hack/gcedriver/go.sum
	@echo "tools: building $@ (the first time it takes several minutes)"
	@version=$$(GOFLAGS='$(COMPILE)' go -C hack/gcedriver list -m -f '{{.Version}}' $(GCE_DRIVER)); \
		GOFLAGS='$(COMPILE)' go -C hack/gcedriver build -buildvcs=false -ldflags "-s -w -X main.version=$$version" -o '$(CURDIR)/$@' $(GCE_DRIVER)/cmd/gce-pd-csi-driver
	@touch $@

# All of Velero that `hack/velero` pins, and a server of S3. Its version is a part of the names of the images that Velero takes.
bin/velero: hack/velero/go.mod hack/velero/go.sum
	@echo "tools: building $@ (the first time it takes several minutes)"
	@version=$$(GOFLAGS='$(COMPILE)' go -C hack/velero list -m -f '{{.Version}}' $(VELERO_MODULE)); \
		GOFLAGS='$(COMPILE)' go -C hack/velero build -buildvcs=false -ldflags "-s -w -X $(VELERO_MODULE)/pkg/buildinfo.Version=$$version" -o '$(CURDIR)/bin/' tool
	@touch $@

# The sidecars that `hack/sidecars` pins, and the driver of Kubernetes' own tests.
bin/csi-provisioner: TOOL := github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner
bin/csi-attacher:    TOOL := github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher
bin/csi-resizer:     TOOL := github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer
bin/snapshot-controller: TOOL := github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller
bin/csi-snapshotter: TOOL := github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter
bin/csi-mock-driver: TOOL := ./mockdriver

bin/csi-provisioner bin/csi-attacher bin/csi-resizer bin/snapshot-controller bin/csi-snapshotter bin/csi-mock-driver: hack/sidecars/go.mod hack/sidecars/go.sum
	@$(build-tool)

bin/csi-mock-driver: hack/sidecars/mockdriver/main.go

# A tool is built in the module that pins it.
define build-tool
echo "tools: building $@ (the first time it takes a minute or more)"
GOFLAGS='$(COMPILE)' go -C $(<D) build -buildvcs=false -o '$(CURDIR)/$@' $(TOOL)
touch $@
endef

# An overlay of $(1) in bin/stamped, with VERSION on every object and with the images $(2) and $(3).
define stamp
(rm -rf bin/stamped; mkdir -p bin/stamped; cd bin/stamped; \
../kustomize create --resources '../../$(1)'; \
../kustomize edit set image "ghcr.io/stowage-dev/stowage-manager=$(2)" "ghcr.io/stowage-dev/stowage-node-agent=$(3)"; \
../kustomize edit add label --without-selector --include-templates 'app.kubernetes.io/version:$(VERSION)')
endef

# Images with their digests, in the shell's variables: IMG and AGENT_IMG where these are given, else those of images-oci.
PINNED = manager=$(if $(HAS_IMAGES),$(IMG),$$(grep /stowage-manager: dist/images.txt)) \
	agent=$(if $(HAS_IMAGES),$(AGENT_IMG),$$(grep /stowage-node-agent: dist/images.txt))

# Debian's packages of the images, for the architecture $(1), as apt-get here finds them, unpacked in $(2)/root with what
# dpkg would record of them. They are taken again only if the folder isn't there.
IMAGE_PACKAGES := e2fsprogs mount util-linux xfsprogs ca-certificates coreutils dash
define unpack
if [[ ! -e $(2)/root ]]; then \
	folder='$(CURDIR)/$(2)'; rm -rf "$$folder"; mkdir -p "$$folder"/{lists,cache/archives}/partial "$$folder/part/var/lib/dpkg/info"; \
	get() { APT_CONFIG=hack/images/apt.conf apt-get -qq -o APT::Architecture=$(1) -o APT::Architectures=$(1) \
		-o Dir::State="$$folder" -o Dir::Cache="$$folder/cache" "$$@" >/dev/null; }; \
	get update; get install --yes --download-only $(IMAGE_PACKAGES); \
	for package in "$$folder"/cache/archives/*.deb; do \
		dpkg-deb --extract "$$package" "$$folder/part"; \
		dpkg-deb --fsys-tarfile "$$package" | tar --list | sed 's|^\.||; s|/$$||' \
			>"$$folder/part/var/lib/dpkg/info/$$(dpkg-deb --field "$$package" Package).list"; \
		{ dpkg-deb --field "$$package" && echo; } >>"$$folder/part/var/lib/dpkg/status"; \
	done; \
	rm -rf "$$folder/cache" && mv "$$folder/part" $(2)/root; \
fi
endef
