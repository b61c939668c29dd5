//go:build tools

// Package controlplane keeps the modules of the test control plane in go.mod:
// nothing here is compiled into Stowage.
package controlplane

import (
	_ "go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
)
