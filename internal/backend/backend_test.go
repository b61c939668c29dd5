package backend_test

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestAnErrorKeepsItsKindAndItsCauseHoweverItIsWrapped(t *testing.T) {
	err := fmt.Errorf("provisioning: %w", backend.Unavailable.Errorf("asking the server: %w", io.ErrUnexpectedEOF))
	if !errors.Is(err, backend.Unavailable) || backend.KindOf(err) != backend.Unavailable {
		t.Error("the kind is lost")
	}
	if errors.Is(err, backend.Invalid) {
		t.Error("it is of another kind, too")
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	if backend.KindOf(io.EOF) != "" {
		t.Error("a foreign error has a kind")
	}
}

func TestTheKindOfAnErrorIsTheOuterOne(t *testing.T) {
	err := backend.Invalid.Errorf("it isn't made any further: %w", backend.InProgress.Errorf("waiting: %w", io.ErrUnexpectedEOF))
	if backend.Unfinished(err) || errors.Is(err, backend.InProgress) || backend.KindOf(err) != backend.Invalid {
		t.Error("it is of the kind of its cause")
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "it isn't made any further: waiting: unexpected EOF" {
		t.Errorf("its cause is lost: %v", err)
	}
}

func TestAnIdIsComputedFromTheClaimAndTheAttempt(t *testing.T) {
	for attempt, want := range map[int]string{0: "pvc-a", 1: "pvc-a", 2: "pvc-a-2"} {
		if got := backend.VolumeID("a", attempt); got != want {
			t.Errorf("attempt %d has the id %s, not %s", attempt, got, want)
		}
	}
}

func TestParametersAreReadOrRefused(t *testing.T) {
	for name, test := range map[string]struct {
		parameters map[string]string
		want       backend.Parameters
		problem    string
	}{
		"right": {map[string]string{"backend": "disks"}, backend.Parameters{Backend: "disks"}, ""},
		"with a file system": {
			map[string]string{"backend": "disks", "csi.storage.k8s.io/fstype": "xfs"}, backend.Parameters{Backend: "disks", FSType: "xfs"}, "",
		},
		"the storage's own": {
			map[string]string{"backend": "disks", "type": "fast"}, backend.Parameters{Backend: "disks", Storage: map[string]string{"type": "fast"}}, "",
		},
		"no backend":      {nil, backend.Parameters{}, `parameter "backend" is missing`},
		"unknown":         {map[string]string{"backend": "disks", "bakend": "x"}, backend.Parameters{}, `unknown parameter "bakend": there are "backend", "csi.storage.k8s.io/fstype", "type" and "labels". Create the class again without it`},
		"no object name":  {map[string]string{"backend": "../etc"}, backend.Parameters{}, "is no name of a StorageBackend"},
		"misspelt in two": {map[string]string{"a": "", "b": ""}, backend.Parameters{}, `unknown parameter "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := backend.ParseParameters(test.parameters, "type", "labels")
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("they are %+v", got)
			}
			if test.problem != "" && (!errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestAFileSystemThatABackendDoesNotMakeIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		offered []string
		asked   string
		problem string
	}{
		"none is named":            {nil, "", ""},
		"one that it makes":        {[]string{"ext4", "xfs"}, "xfs", ""},
		"one that it can't make":   {[]string{"ext4", "xfs"}, "btrfs", "is one of [ext4 xfs]"},
		"there is nothing to make": {nil, "ext4", "without the parameter csi.storage.k8s.io/fstype"},
	} {
		t.Run(name, func(t *testing.T) {
			can := backend.Capabilities{VolumeModes: []corev1.PersistentVolumeMode{""}, FSTypes: test.offered}
			err := can.Check(backend.Request{FSType: test.asked})
			if (test.problem == "") != (err == nil) || err != nil && (!errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestARegistryOpensWhatItServesAndRefusesTheRest(t *testing.T) {
	registry := backend.NewRegistry(fake.Kind{For: stowagev1alpha1.LocalType, Backend: fake.New()})
	if !backend.IsOurs(stowagev1alpha1.NFSDriver) || backend.IsOurs("nfs.csi.k8s.io") {
		t.Error("the drivers that are Stowage's own are wrong")
	}
	if _, err := registry.Open(LocalBackend("disks")); err != nil {
		t.Errorf("opening what is served: %v", err)
	}
	foreign := LocalBackend("share", func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local, object.Spec.NFS = nil, &stowagev1alpha1.NFSBackend{}
	})
	if _, err := registry.Open(foreign); !errors.Is(err, backend.Invalid) {
		t.Errorf("opening what is not served: %v", err)
	}
}

func TestACapacityBeyondInt64IsRefused(t *testing.T) {
	modes := backend.Capabilities{VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem}}
	for size, refused := range map[string]bool{"1Gi": false, "9E": false, "8Ei": false, "900E": true} {
		capacity := resource.MustParse(size)
		err := modes.Check(backend.Request{Capacity: capacity, VolumeMode: corev1.PersistentVolumeFilesystem})
		if errors.Is(err, backend.Invalid) != refused {
			t.Errorf("a claim for %s: %v", size, err)
		}
		if _, err = backend.Expand(t.Context(), fake.New(), backend.ExpandRequest{ID: "v", Capacity: capacity}); errors.Is(err, backend.Invalid) != refused {
			t.Errorf("growth to %s: %v", size, err)
		}
	}
}

func TestAnIdBelongsToAClaimOrNot(t *testing.T) {
	for id, want := range map[string]bool{
		"pvc-a": true, "pvc-a-2": true, "pvc-a-10": true,
		"pvc-ab": false, "pvc-a-b": false, "pvc-a-": false, "pvc-a-2-3": false, "pvc-b": false, "": false,
	} {
		if got := backend.IsVolumeID(id, "a"); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}
