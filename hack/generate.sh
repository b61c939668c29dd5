#!/usr/bin/env bash
# Writes everything that is generated from the code: deep copies, CRDs, RBAC roles, the API reference.
# `make verify` calls it too: whatever is written must be named in generated_files of verify.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Writes the role that the rbac markers below a folder ask for; a folder without markers has no role.
generate_role() {
  local role=$1 file=$2 folder=$3
  grep -rqs '+kubebuilder:rbac' "$folder" || return 0
  bin/controller-gen rbac:roleName="$role",fileName="$file" paths="./$folder/..." output:rbac:dir=config/rbac
}

bin/controller-gen object paths=./api/...
bin/controller-gen crd paths=./api/... output:crd:dir=config/crd
generate_role stowage-manager role.yaml controllers
generate_role stowage-node-agent node_agent_role.yaml internal/nodemanager
mkdir -p docs
bin/crd-ref-docs --config hack/api-reference.yaml --source-path api/v1alpha1 \
  --renderer markdown --output-path docs/api.md --log-level ERROR
