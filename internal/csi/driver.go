// Package csi is the kubelet's front door: the Identity and Node services of the
// Container Storage Interface, one server for each of Stowage's drivers, and their
// registration with the kubelet.
//
// It checks what is asked, has one thing at a time done to a volume, and says what came
// of it in the words of the interface. What is done to mounts and devices is up to
// package drivers.
package csi

import "context"

// Info is what is said of this node to schedulers, for one driver.
type Info struct {
	// NodeID is the node's name for the driver.
	NodeID string
	// MaxVolumes is how many of its volumes the node takes; 0: no limit is known.
	MaxVolumes int64
	// Topology is where the node is, by label; empty if that doesn't matter.
	Topology map[string]string
}

// Informer tells what is said of this node. Errors are passed on to the kubelet, which
// asks again.
type Informer func(ctx context.Context) (Info, error)
