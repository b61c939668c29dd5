package starter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/starter"
)

// snapshots is an API with two kinds.
var snapshots = starter.API{
	Of: "snapshots", Version: "snapshot.storage.k8s.io/v1",
	Lists: []client.ObjectList{&snapshotv1.VolumeSnapshotContentList{}, &snapshotv1.VolumeSnapshotList{}},
}

// answers is an API server that gives these answers in turn, and then the last one.
type answers struct {
	client.Reader
	errs  []error
	asked int
}

func (a *answers) List(context.Context, client.ObjectList, ...client.ListOption) error {
	err := a.errs[min(a.asked, len(a.errs)-1)]
	a.asked++
	return err
}

func TestSnapshotsAreServedOnceTheirCRDsAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "VolumeSnapshotContent"}}
		live := &answers{errs: []error{none, apierrors.NewNotFound(schema.GroupResource{}, ""), errors.New("forbidden"), nil, none, nil}}
		began, added := time.Now(), 0
		started := starter.New(live, snapshots, func() error { added++; return nil })
		if err := started.Start(t.Context()); err != nil || added != 1 || live.asked != 7 {
			t.Errorf("it asked %d times and added %d reconcilers: %v", live.asked, added, err)
		}
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("it asked 5 times within %s", took)
		}
		if why, known := started.Missing(); why != "" || !known {
			t.Errorf("afterwards it says %q, known: %t", why, known)
		}
	})
}

func TestWithoutTheCRDsNothingHappensUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := &answers{errs: []error{&meta.NoKindMatchError{}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		started := starter.New(live, snapshots, func() error { return errors.New("added") })
		if _, known := started.Missing(); known {
			t.Error("before the first look it knows what is missing")
		}
		if err := started.Start(ctx); err != nil || live.asked > 125 {
			t.Errorf("it asked %d times: %v", live.asked, err)
		}
		if why, known := started.Missing(); why != "the CRDs of snapshot.storage.k8s.io/v1 are not installed" || !known {
			t.Errorf("it says %q, known: %t", why, known)
		}
	})
}
