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
# What `make test` tests, and further flags for go test.
PACKAGES  ?= ./...
TESTFLAGS ?=
# How often `make kill-matrix` runs.
RUNS      ?= 1
# Which stories `make e2e` tells, as a regular expression of their names; and whether its
# cluster stays after them.
STORIES   ?=
STAY      ?=
# Flags of `make bench`.
BENCHFLAGS ?=
# Names of the images that `make images` builds.
REGISTRY ?= ghcr.io/stowage-dev

# ---------------------------------------------------------------- internals
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

K8S_BIN    := bin/k8s/$(K8S_VERSION)
KUBECTL    ?= $(or $(shell command -v kubectl 2>/dev/null),$(K8S_BIN)/kubectl)
MODULES    := . hack/controlplane hack/images hack/tools hack/golangci-lint
GO_BUILD   := go build -buildvcs=false
LINK_FLAGS := -X github.com/stowage-dev/stowage/internal/program.version=$(VERSION)

##@ Develop

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "; print "Usage: make <target>"} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' Makefile

.PHONY: build
build: ## Build bin/manager, bin/node-agent and bin/gce-mock.
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
test: controlplane bin/gotestsum ## Run all tests: unit, API server, and (as root) real mounts and loop devices. PACKAGES and TESTFLAGS narrow it.
	@mkdir -p bin/test
	@hack/filesystems.sh
	@$(GO_BUILD) -o bin/testsummary ./hack/testsummary
	@go -C hack/images test ./...
	@status=0; GINKGO_NO_COLOR=TRUE \
	bin/gotestsum --format pkgname-and-test-fails --hide-summary all --jsonfile bin/test/report.json -- \
		-race -shuffle=on -p 2 -timeout 40m $(TESTFLAGS) $(PACKAGES) || status=$$?; \
	bin/testsummary bin/test/report.json; exit $$status

.PHONY: test-stock
test-stock: build controlplane-whole ## Test Stowage beside the real kube-controller-manager and kube-scheduler, and the hand-over to --scope=cluster and back. Needs root.
	@STOWAGE_TEST_STOCK=1 GINKGO_NO_COLOR=TRUE go test -timeout 20m ./test/stock

.PHONY: test-sanity
test-sanity: build controlplane ## csi-sanity, the conformance tests of CSI, for each driver and kind of volume, with real mounts. Needs root; installs Debian packages.
	@hack/uml/need.sh
	@hack/filesystems.sh
	@$(GO_BUILD) -o bin/sanity ./test/sanity
	@exec bin/sanity

.PHONY: kill-matrix
kill-matrix: ## Kill a node manager before each step of its work, with each type of volume, RUNS times. Needs root. `make test` takes a sample.
	@hack/filesystems.sh
	@for run in $$(seq $(RUNS)); do echo "run $$run of $(RUNS)"; go test -count=1 -timeout 60m -run 'TestANodeManagerThatIsKilled|TestOfAPodThatGoesAfterAKill' ./internal/nodemanager; done

.PHONY: demo
demo: build controlplane ## Watch the whole life of a volume, explained and checked, on this machine.
	@$(GO_BUILD) -o bin/demo ./hack/demo
	@exec bin/demo

.PHONY: e2e-nfs
e2e-nfs: build controlplane ## A whole Stowage with NFS volumes on two nodes, User Mode Linux guests; servers stop, hang and start. Needs root; installs Debian packages.
	@hack/uml/need.sh
	@$(GO_BUILD) -o bin/e2e-nfs ./test/e2e-nfs
	@exec bin/e2e-nfs

.PHONY: e2e-local
e2e-local: ## Tests of local volumes that need another kernel than the machine's, for quotas and growth, in a User Mode Linux guest. Needs root; installs Debian packages.
	@hack/uml/need.sh
	@hack/filesystems.sh
	@rm -rf bin/test/e2e-local && mkdir -p bin/test/e2e-local
	@CGO_ENABLED=0 go test -c -o bin/test/e2e-local/ ./internal/quota ./internal/device ./internal/nodemanager/volumes/csi ./internal/nodemanager/volumes/emptydir ./internal/nodemanager/localvolume
	@$(GO_BUILD) -o bin/e2e-local ./test/e2e-local
	@exec bin/e2e-local

.PHONY: e2e-node
e2e-node: controlplane ## All tests of the node side, in a User Mode Linux guest, whose mount table they may break. Needs root; installs Debian packages.
	@hack/uml/need.sh
	@hack/filesystems.sh
	@rm -rf bin/test/e2e-node && mkdir -p bin/test/e2e-node
	@CGO_ENABLED=0 go test -c -o bin/test/e2e-node/ ./internal/mount ./internal/device ./internal/ownership ./internal/nodemanager $$(go list ./internal/nodemanager/volumes/... | grep -E '/(volumes|apidata|atomicdir|csi|emptydir|hostpath|inlinenfs|local|nfs)$$') ./internal/nodemanager/subpath ./internal/nodemanager/localvolume
	@$(GO_BUILD) -o bin/e2e-node ./test/e2e-node
	@exec bin/e2e-node

.PHONY: e2e-attach
e2e-attach: build controlplane ## A whole Stowage with disks of gce-mock, plugged into two nodes, User Mode Linux guests; nodes die, programs are killed, the cloud fails. Needs root; installs Debian packages.
	@hack/uml/need.sh
	@$(GO_BUILD) -o bin/e2e-attach ./test/e2e-attach
	@exec bin/e2e-attach

.PHONY: e2e-kubelet
e2e-kubelet: controlplane-whole image-archives ## The nodes of end-to-end tests with pods that run, without Stowage: containerd and a kubelet on this machine and in two User Mode Linux guests. Needs root; installs Debian packages.
	@hack/uml/need.sh
	@hack/e2e/need.sh
	@$(GO_BUILD) -o bin/e2e-kubelet ./test/e2e-kubelet
	@exec bin/e2e-kubelet

.PHONY: e2e
e2e: build controlplane-whole image-archives bin/kustomize ## Stowage as each of OVERLAYS installs it, in a Kubernetes with three real nodes: pods write and read. STORIES narrows it; STAY=yes keeps the first cluster until Ctrl-C. Needs root; installs Debian packages.
	@hack/uml/need.sh
	@hack/e2e/need.sh
	@$(GO_BUILD) -o bin/e2e ./test/e2e
	@for overlay in $(if $(STAY),$(firstword $(OVERLAYS)),$(OVERLAYS)); do STOWAGE_E2E_OVERLAY=$$overlay STOWAGE_E2E_STORIES='$(STORIES)' STOWAGE_E2E_STAY='$(STAY)' bin/e2e; done

.PHONY: bench
bench: build controlplane ## Measure binding against bare API writes, with targets. BENCHFLAGS such as '--n 10000'; --help lists them.
	@$(GO_BUILD) -ldflags '$(LINK_FLAGS)' -o bin/bench ./test/bench
	@exec bin/bench $(BENCHFLAGS)

##@ Run

.PHONY: run
run: build controlplane ## Run a control plane, the manager and the node agent here, in RUN_DIR, until Ctrl-C.
	@$(GO_BUILD) -o bin/run ./hack/run
	@exec bin/run --dir '$(RUN_DIR)'

.PHONY: clean-run
clean-run: ## Remove what `make run` left in RUN_DIR, with all volumes in it.
	@$(GO_BUILD) -o bin/run ./hack/run
	@exec bin/run --dir '$(RUN_DIR)' --clean

##@ Deploy to the cluster of KUBECONFIG

.PHONY: install
install: bin/kustomize ## Install the CRDs.
	bin/kustomize build config/crd | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: bin/kustomize ## Remove the CRDs, once no StorageBackend and no LocalVolume is left.
	@left=$$($(KUBECTL) get storagebackends,localvolumes -o name --ignore-not-found 2>/dev/null || true); \
	if [[ -n $$left ]]; then \
		echo "These are still there. Delete the claims that use them, then them:"; echo "$$left"; exit 1; \
	fi
	bin/kustomize build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: bin/kustomize ## Install Stowage. OVERLAY=default: beside kube-controller-manager; standalone: instead of its volume controllers.
	bin/kustomize build config/$(OVERLAY) | $(KUBECTL) apply --server-side -f -

.PHONY: undeploy
undeploy: bin/kustomize ## Remove the manager and the node agents. CRDs, StorageBackends, volumes and their data stay.
	bin/kustomize build config/$(OVERLAY) | awk -f hack/without_crds.awk | $(KUBECTL) delete --ignore-not-found --timeout=3m -f -

.PHONY: images
images: ## Build the container images, with docker.
	docker build --build-arg VERSION=$(VERSION) --target manager -t $(REGISTRY)/stowage-manager:$(VERSION) .
	docker build --build-arg VERSION=$(VERSION) --target node-agent -t $(REGISTRY)/stowage-node-agent:$(VERSION) .
	docker build --build-arg VERSION=$(VERSION) --target gce-mock -t $(REGISTRY)/stowage-gce-mock:$(VERSION) .

.PHONY: image-archives
image-archives: ## Write the images, and two for test pods, into bin/images, without docker: archives for `ctr -n k8s.io images import`.
	@hack/images/need.sh
	@mkdir -p bin/images/programs
	@CGO_ENABLED=0 $(GO_BUILD) -trimpath -ldflags '-s -w -buildid= $(LINK_FLAGS)' -o bin/images/programs/ ./cmd/...
	@GOFLAGS= CGO_ENABLED=0 go -C hack/images build -buildvcs=false -trimpath -ldflags '-s -w -buildid=' -o '$(CURDIR)/bin/images/programs/' ./pause
	@GOFLAGS= go -C hack/images build -buildvcs=false -o '$(CURDIR)/bin/images/archive' .
	@bin/images/archive

##@ Tools

.PHONY: controlplane
controlplane: ## Put etcd, kube-apiserver and kubectl into bin/k8s. CONTROLPLANE=download fetches them instead of building.
	@hack/controlplane/build.sh $(K8S_VERSION) $(K8S_BIN)

.PHONY: controlplane-whole
controlplane-whole: controlplane ## Put kube-controller-manager, kube-scheduler and kubelet beside them: what a stock Kubernetes has.
	@for program in kube-controller-manager kube-scheduler kubelet; do \
		hack/controlplane/build.sh $(K8S_VERSION) $(K8S_BIN) $$program; \
	done

.PHONY: tools
tools: bin/controller-gen bin/kustomize bin/gotestsum bin/crd-ref-docs bin/golangci-lint ## Build the tools into bin/.

.PHONY: clean
clean: ## Remove bin/. The control plane stays in your cache.
	rm -rf bin

bin/controller-gen: TOOL := sigs.k8s.io/controller-tools/cmd/controller-gen
bin/kustomize:      TOOL := sigs.k8s.io/kustomize/kustomize/v5
bin/gotestsum:      TOOL := gotest.tools/gotestsum
bin/crd-ref-docs:   TOOL := github.com/elastic/crd-ref-docs
bin/golangci-lint:  TOOL := github.com/golangci/golangci-lint/v2/cmd/golangci-lint

bin/controller-gen bin/kustomize bin/gotestsum bin/crd-ref-docs: hack/tools/go.mod hack/tools/go.sum
	@$(build-tool)

bin/golangci-lint: hack/golangci-lint/go.mod hack/golangci-lint/go.sum
	@$(build-tool)

# A tool is built in the module that pins it.
define build-tool
echo "tools: building $@ (the first time it takes a minute or more)"
GOFLAGS= go -C $(<D) build -buildvcs=false -o '$(CURDIR)/$@' $(TOOL)
touch $@
endef
