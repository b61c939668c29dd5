package volumeagent

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// attempts are the volumes of which something may have been made, by this process or an earlier one. Only the
// node's agent makes any. An earlier process can have made only what this process lists, live, before its own first
// attempt. All methods are safe for concurrent use.
type attempts struct {
	node string
	// live lists from the API server: a cache may lack what an earlier process made.
	live client.Reader

	mu sync.Mutex
	// listed and tried are the UIDs of NodeVolumes, by their names. Nil: they have not been listed yet. What was listed is
	// never dropped: a cache may still be at one of the name that was there before.
	listed, tried map[string]types.UID
}

// beginFirst reports whether no process tried to make a volume before. After that, there was an attempt.
func (a *attempts) beginFirst(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listed == nil {
		listed, err := a.list(ctx)
		if err != nil {
			return false, err
		}
		a.listed, a.tried = listed, map[string]types.UID{}
	}
	if a.listed[volume.Name] == volume.UID || a.tried[volume.Name] == volume.UID {
		return false, nil
	}
	a.tried[volume.Name] = volume.UID
	return true, nil
}

func (a *attempts) list(ctx context.Context) (map[string]types.UID, error) {
	volumes := &metav1.PartialObjectMetadataList{}
	volumes.SetGroupVersionKind(stowagev1alpha1.GroupVersion.WithKind("NodeVolumeList"))
	if err := a.live.List(ctx, volumes, client.MatchingFields{nodeField: a.node}); err != nil {
		return nil, fmt.Errorf("listing the node's volumes: %w", err)
	}
	listed := make(map[string]types.UID, len(volumes.Items))
	for i := range volumes.Items {
		listed[volumes.Items[i].Name] = volumes.Items[i].UID
	}
	return listed, nil
}

// forget drops a volume that is gone.
func (a *attempts) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tried, name)
}
