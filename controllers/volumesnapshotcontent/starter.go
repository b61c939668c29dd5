package volumesnapshotcontent

import (
	"context"
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
)

// lookInterval is how often the API server is asked whether it serves snapshots by now.
const lookInterval = 30 * time.Second

// Starter adds the reconciler to a running manager, once the API server serves VolumeSnapshots and their
// contents.
// Clusters without their CRDs work as before, and the CRDs may come at any time.
type Starter struct {
	live client.Reader
	add  func() error
}

// NewStarter makes the starter. Add adds the reconciler to the manager.
func NewStarter(deps reconciler.Dependencies, add func() error) *Starter {
	return &Starter{live: deps.Live, add: add}
}

// SetupWithManager adds the starter itself.
func (s *Starter) SetupWithManager(mgr ctrl.Manager) error { return mgr.Add(s) }

// Start implements manager.Runnable. It is called on the leader.
func (s *Starter) Start(ctx context.Context) error {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	said := ""
	for {
		why, err := s.missing(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && why == "":
			ctrl.Log.Info("serving snapshots: the API server has VolumeSnapshots and their contents")
			return s.add()
		case err != nil:
			why = err.Error()
		}
		if why != said {
			ctrl.Log.Info("not serving snapshots yet", "because", why, "lookingEvery", lookInterval.String())
			said = why
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// missing returns why snapshots and contents can't be read yet; "" if they can. An informer that can't read
// them would end the manager.
func (s *Starter) missing(ctx context.Context) (why string, err error) {
	for _, list := range []client.ObjectList{&snapshotv1.VolumeSnapshotContentList{}, &snapshotv1.VolumeSnapshotList{}} {
		err = s.live.List(ctx, list, client.Limit(1))
		switch {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			return "the CRDs of snapshot.storage.k8s.io/v1 are not installed", nil
		case err != nil:
			return "", fmt.Errorf("reading a %T: %w", list, err)
		}
	}
	return "", nil
}
