package csi

import (
	"context"
	"maps"
	"sync"
)

// Info is what one driver reports about this node, for schedulers.
type Info struct {
	// NodeID is the node's name for the driver.
	NodeID string
	// MaxVolumes is how many of its volumes the node takes; 0: no limit is known.
	MaxVolumes int64
	// Topology is where the node is, by label; empty if that doesn't matter.
	Topology map[string]string
}

// Informer returns what a driver reports about this node. Its errors reach the kubelet,
// which asks again.
type Informer func(ctx context.Context) (Info, error)

// informer keeps what was last reported to the kubelet about the node.
type informer struct {
	ask Informer

	mu       sync.Mutex
	reported *Info
}

// report is an Informer for answers to the kubelet.
func (i *informer) report(ctx context.Context) (Info, error) {
	info, err := i.ask(ctx)
	if err != nil {
		return Info{}, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reported = &info
	return info, nil
}

// hasChanged reports whether the node's information differs from what was last reported to
// the kubelet. It stays true until the kubelet asks again.
func (i *informer) hasChanged(ctx context.Context) (bool, error) {
	i.mu.Lock()
	reported := i.reported
	i.mu.Unlock()
	if reported == nil {
		return false, nil
	}
	now, err := i.ask(ctx)
	return err == nil && !now.equals(*reported), err
}

func (i Info) equals(other Info) bool {
	return i.NodeID == other.NodeID && i.MaxVolumes == other.MaxVolumes && maps.Equal(i.Topology, other.Topology)
}
