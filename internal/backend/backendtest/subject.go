package backendtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

type subject struct {
	backend.Backend
	has func(id string) bool
}

// Request asks for a volume of 1Mi for the claim with this uid.
func Request(uid string) backend.Request {
	return backend.Request{
		ID:          backend.VolumeID(types.UID(uid), 1),
		Claim:       stowagev1alpha1.ClaimReference{Namespace: "default", Name: "claim-" + uid, UID: types.UID(uid)},
		Capacity:    resource.MustParse("1Mi"),
		VolumeMode:  corev1.PersistentVolumeFilesystem,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
	}
}

// patience is how long a call may return InProgress.
const patience = 30 * time.Second

const pause = 10 * time.Millisecond

func (s subject) mustProvision(t *testing.T, request backend.Request) *backend.Volume {
	t.Helper()
	made, err := s.provision(request)
	if err != nil {
		t.Fatalf("provisioning %s: %v", request.ID, err)
	}
	return made
}

func (s subject) mustDelete(t *testing.T, id string) {
	t.Helper()
	err := untilFinal(func() error { return s.Delete(context.Background(), id) })
	if err != nil {
		t.Fatalf("deleting %s: %v", id, err)
	}
}

// provision repeats the call until its outcome is final, as the contract asks.
func (s subject) provision(request backend.Request) (made *backend.Volume, err error) {
	err = untilFinal(func() (err error) {
		made, err = s.Provision(context.Background(), request)
		return err
	})
	return made, err
}

func untilFinal(call func() error) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := call()
		if !backend.Unfinished(err) && !errors.Is(err, backend.NotReady) {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return fmt.Errorf("still in progress after %s: %w", patience, err)
		}
	}
}
