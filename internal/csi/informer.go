package csi

import (
	"context"
	"maps"
	"sync"
)

// informer remembers what the kubelet was told of the node.
type informer struct {
	ask Informer

	mu   sync.Mutex
	told *Info
}

// tell is an Informer, for what tells the kubelet.
func (i *informer) tell(ctx context.Context) (Info, error) {
	info, err := i.ask(ctx)
	if err != nil {
		return Info{}, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.told = &info
	return info, nil
}

// hasChanged says whether something else would be said now than the kubelet was told last.
// It says so until the kubelet asked again.
func (i *informer) hasChanged(ctx context.Context) (bool, error) {
	i.mu.Lock()
	told := i.told
	i.mu.Unlock()
	if told == nil {
		return false, nil
	}
	now, err := i.ask(ctx)
	return err == nil && !now.equals(*told), err
}

func (i Info) equals(other Info) bool {
	return i.NodeID == other.NodeID && i.MaxVolumes == other.MaxVolumes && maps.Equal(i.Topology, other.Topology)
}
