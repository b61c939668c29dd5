#!/usr/bin/env bash
# Writes everything that is generated from the code: deep copies, CRDs, RBAC roles, the API reference,
# and which tests prove what of volume types.
# `make verify` calls it too: whatever is written must be named in generated_files of verify.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin/controller-gen object paths=./api/...
bin/controller-gen crd paths=./api/... output:crd:dir=config/crd
bin/controller-gen rbac:roleName=stowage-manager "paths=./controllers/...;./cmd/manager" output:rbac:dir=config/rbac
agent_role=$(mktemp -d)
trap 'rm -rf "$agent_role"' EXIT
bin/controller-gen rbac:roleName=stowage-node-agent "paths=./internal/node/...;./internal/nodemanager/...;./cmd/node-agent" "output:rbac:dir=$agent_role"
cat "$agent_role/role.yaml" >config/rbac/node_agent_role.yaml
mkdir -p docs
bin/crd-ref-docs --config hack/api-reference.yaml --source-path api/v1alpha1 \
  --renderer markdown --output-path docs/api.md --log-level ERROR
go run -buildvcs=false ./hack/volumes
