package liveread

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/sharedread"
)

const (
	// fastList is how long a list of all volumes takes at most for the cache not to be asked.
	fastList = 10 * time.Millisecond
	// longestWait is how long the cache is waited for at most, and shownPoll how often it is asked.
	longestWait = 2 * time.Second
	shownPoll   = 5 * time.Millisecond
)

// Handles knows which volumes refer to the same storage. Its answers are never older than the call.
//
// The cache answers, once it shows all that was written before the call. A live list of one volume has the resourceVersion of now, and
// the cache's store has the one up to which it has seen everything. Both are of the same resource, and so they can be compared. If the
// cache is late by as long as a list of all volumes takes, or doesn't say what it has seen, that list answers. A store says so only if
// it applies a new list at once, and its other changes in order (client-go's feature AtomicFIFO). Handles may be used concurrently.
type Handles struct {
	live client.Reader
	// cached is nil until Follow, and store then says what it has seen.
	cached client.Reader
	store  interface{ LastStoreSyncResourceVersion() string }
	shown  *sharedread.Reads[struct{}, bool]
	listed *sharedread.Reads[struct{}, ByHandle]
	// listTakes is how long the last list of all volumes took.
	listTakes atomic.Int64
}

// ByHandle groups the volumes that refer to the same storage, by its handle.
type ByHandle map[string][]volumeIdentity

type volumeIdentity struct {
	Name    string
	UID     types.UID
	version string
}

func newHandles(live client.Reader) *Handles {
	h := &Handles{live: live}
	h.shown, h.listed = sharedread.New(h.isShown), sharedread.New(h.list).Paced()
	return h
}

// follow has the cache answer. It must be called before the first Get.
func (h *Handles) follow(ctx context.Context, cached cache) error {
	volumes, err := cached.GetInformer(ctx, &corev1.PersistentVolume{})
	if err != nil {
		return fmt.Errorf("following volumes: %w", err)
	}
	stored, has := volumes.(interface{ GetStore() toolscache.Store })
	if !has {
		return fmt.Errorf("following volumes: a %T has no store", volumes)
	}
	h.cached, h.store = cached, stored.GetStore()
	return nil
}

// Get returns the volumes that refer to a storage, in the format of index.HandleOf, and perhaps others.
func (h *Handles) Get(ctx context.Context, handle string) (ByHandle, error) {
	if h.store != nil && time.Duration(h.listTakes.Load()) > fastList {
		if isShown, err := h.shown.Get(ctx, struct{}{}); err == nil && isShown {
			volumes, err := index.VolumesOf(ctx, h.cached, handle)
			return GroupByHandle(volumes), err
		}
	}
	return h.listed.Get(ctx, struct{}{})
}

// isShown reports whether the cache shows what the API server has now.
func (h *Handles) isShown(ctx context.Context, _ struct{}) (bool, error) {
	seen, now := h.store.LastStoreSyncResourceVersion(), &corev1.PersistentVolumeList{}
	if err := h.live.List(ctx, now, client.Limit(1)); err != nil {
		return false, fmt.Errorf("reading the version of the volumes: %w", err)
	}
	ahead, err := resourceversion.CompareResourceVersion(seen, now.ResourceVersion)
	switch {
	case err != nil:
		return false, fmt.Errorf("comparing what the cache has seen: %w", err)
	case ahead > 0: // etcd was restored from a backup
		return false, nil
	}
	timeout := min(time.Duration(h.listTakes.Load()), longestWait)
	err = wait.PollUntilContextTimeout(ctx, shownPoll, timeout, true, func(context.Context) (bool, error) {
		compared, err := resourceversion.CompareResourceVersion(h.store.LastStoreSyncResourceVersion(), now.ResourceVersion)
		return compared >= 0, err
	})
	return err == nil, nil
}

func (h *Handles) list(ctx context.Context, _ struct{}) (ByHandle, error) {
	began, volumes := time.Now(), &corev1.PersistentVolumeList{}
	if err := h.live.List(ctx, volumes); err != nil {
		return nil, fmt.Errorf("listing the volumes: %w", err)
	}
	h.listTakes.Store(int64(time.Since(began)))
	return GroupByHandle(volumes.Items), nil
}

// GroupByHandle groups volumes by the storage that they refer to.
func GroupByHandle(volumes []corev1.PersistentVolume) ByHandle {
	found := make(ByHandle, len(volumes))
	for i := range volumes {
		for _, handle := range index.HandleOf(&volumes[i]) {
			found[handle] = append(found[handle], volumeIdentity{Name: volumes[i].Name, UID: volumes[i].UID, version: volumes[i].ResourceVersion})
		}
	}
	return found
}

// Has reports whether a volume is there, as it is at hand.
func (s ByHandle) Has(pv *corev1.PersistentVolume) bool {
	return slices.ContainsFunc(index.HandleOf(pv), func(handle string) bool {
		return slices.ContainsFunc(s[handle], func(one volumeIdentity) bool { return one.UID == pv.UID && one.version == pv.ResourceVersion })
	})
}

// Beside returns the name of another volume that refers to the same storage, or "".
func (s ByHandle) Beside(pv *corev1.PersistentVolume) string {
	for _, handle := range index.HandleOf(pv) {
		for _, other := range s[handle] {
			if other.UID != pv.UID {
				return other.Name
			}
		}
	}
	return ""
}
