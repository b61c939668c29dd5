#!/usr/bin/env bash
# Writes what is generated from the code: deep copies, CRDs, roles and the API reference.
# `make verify` calls it too: whatever is written must be named in generated_files of verify.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin/controller-gen object paths=./api/...
bin/controller-gen crd paths=./api/... output:crd:dir=config/crd
cluster='./controllers/ephemeral;./controllers/node/...;./controllers/persistentvolume/recycle;./controllers/volumeattributesclass;./controllers/volumesnapshot;./controllers/volumegroupsnapshot'
bin/controller-gen rbac:roleName=stowage-manager "paths=./cmd/manager;$(go list ./controllers/... | grep -vxFf <(go list ${cluster//;/ }) | paste -sd ';')" output:rbac:dir=config/rbac
bin/controller-gen rbac:roleName=stowage-manager-cluster "paths=$cluster" output:rbac:dir=config/rbac/cluster-scope
agent_role=$(mktemp -d)
trap 'rm -rf "$agent_role"' EXIT
bin/controller-gen rbac:roleName=stowage-node-agent "paths=./internal/node/...;./internal/nodemanager/...;./cmd/node-agent" "output:rbac:dir=$agent_role"
cat "$agent_role/role.yaml" >config/rbac/node_agent_role.yaml
bin/crd-ref-docs --config hack/api-reference.yaml --source-path api/v1alpha1 \
  --renderer markdown --output-path docs/api.md --log-level ERROR
