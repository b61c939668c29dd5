package csi_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

// ControllerModifyVolume changes the attributes of a volume.
func (d *driver) ControllerModifyVolume(
	_ context.Context, request *csispec.ControllerModifyVolumeRequest,
) (*csispec.ControllerModifyVolumeResponse, error) {
	of := d.volumes[request.GetVolumeId()]
	if of == nil {
		return nil, status.Error(codes.NotFound, "there is no such volume")
	}
	of.mutable = request.GetMutableParameters()
	return &csispec.ControllerModifyVolumeResponse{}, nil
}

// attributesOf are those that a volume has.
func (d *driver) attributesOf(id string) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.volumes[id].mutable
}

// withAttributes is a request for a volume of a VolumeAttributesClass.
func withAttributes(iops string) backend.Request {
	request := backendtest.Request("1")
	request.Attributes = attributes(iops)
	return request
}

func attributes(iops string) *backend.Attributes {
	return &backend.Attributes{Class: "c" + iops, Parameters: map[string]string{"iops": iops}}
}

func (w *world) modify(ctx context.Context, iops string) error {
	return backend.Modify(ctx, w.Backend, backendtest.Request("1").ID, *attributes(iops))
}

func TestTheContractOfChanges(t *testing.T) {
	backendtest.ModifyContract(t, func(t *testing.T) (backend.Backend, func(string) map[string]string) {
		w := newWorld(t)
		return w.Backend, w.attributesOf
	})
}

func TestAVolumeIsMadeWithAttributesAndGetsOthers(t *testing.T) {
	w := newWorld(t)
	w.secrets["grow"], w.secrets["change"] = map[string][]byte{"key": []byte("g")}, map[string][]byte{"key": []byte("c")}
	w.object.Spec.CSI.Secrets.ControllerExpand = &stowagev1alpha1.SecretReference{Name: "grow"}
	w.open(t)
	made, err := w.Provision(t.Context(), withAttributes("1"))
	if err != nil || w.attributesOf(made.Handle)["iops"] != "1" {
		t.Fatalf("it is made with %v, %v", w.attributesOf(made.Handle), err)
	}
	for _, iops := range []string{"2", "2", "3", "1"} {
		if err := w.modify(t.Context(), iops); err != nil || !maps.Equal(w.attributesOf(made.Handle), map[string]string{"iops": iops}) {
			t.Fatalf("it has %v, %v", w.attributesOf(made.Handle), err)
		}
	}
	w.object.Spec.CSI.Secrets.ControllerModify = &stowagev1alpha1.SecretReference{Name: "change"}
	w.open(t)
	if err := w.modify(t.Context(), "4"); err != nil {
		t.Fatal(err)
	}
	asked := did[*csispec.ControllerModifyVolumeRequest](w.driver)
	if asked[0].GetSecrets()["key"] != "g" || asked[len(asked)-1].GetSecrets()["key"] != "c" {
		t.Errorf("the calls have the secrets %v, then %v", asked[0].GetSecrets(), asked[len(asked)-1].GetSecrets())
	}
}

func TestAVolumeWithAttributesIsUndoneWithThem(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Provision(t.Context(), withAttributes("1")); err != nil {
		t.Fatal(err)
	}
	if err := backend.Undo(t.Context(), w.Backend, withAttributes("1")); err != nil || w.has(backendtest.Request("1").ID) {
		t.Errorf("it has %v, and is there: %t", err, w.has(backendtest.Request("1").ID))
	}
}

func TestADriverWithoutAttributesMakesAndChangesNoVolumeWithThem(t *testing.T) {
	w := newWorld(t)
	w.abilities = w.abilities[:1]
	_, err := w.Provision(t.Context(), withAttributes("1"))
	if !errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), "MODIFY_VOLUME: create the claim without volumeAttributesClassName") {
		t.Errorf("making has %v", err)
	}
	if err := w.modify(t.Context(), "1"); !errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), "MODIFY_VOLUME") {
		t.Errorf("changing has %v", err)
	}
	if len(did[*csispec.CreateVolumeRequest](w.driver))+len(did[*csispec.ControllerModifyVolumeRequest](w.driver)) > 0 {
		t.Error("the driver was called")
	}
}

func TestAnErrorOfAChangeIsFinalAsExternalResizerTakesIt(t *testing.T) {
	for code, want := range map[codes.Code]backend.ErrorKind{
		codes.InvalidArgument: backend.Invalid, codes.OutOfRange: backend.Invalid, codes.Unimplemented: backend.Invalid,
		codes.NotFound: backend.NotFound, codes.Internal: backend.NotReady, codes.FailedPrecondition: backend.NotReady, codes.PermissionDenied: backend.NotReady,
		codes.Aborted: backend.InProgress, codes.DeadlineExceeded: backend.InProgress,
		codes.ResourceExhausted: "", codes.Unavailable: "", codes.Canceled: "",
	} {
		w := newWorld(t)
		w.answersTo("ControllerModifyVolume", status.Error(code, "no"))
		if err := w.modify(t.Context(), "1"); err == nil || backend.KindOf(err) != want {
			t.Errorf("%s has %q, %v", code, backend.KindOf(err), err)
		}
	}
}

func TestAChangeThatDidNotReachTheDriverSaysNothingOfAnEarlierOne(t *testing.T) {
	for name, change := range map[string]func(*world){
		"a driver with another name": func(w *world) { w.name = "other.example.com" },
		"a driver that is away":      func(w *world) { w.server.Stop() },
		"a Secret that is missing": func(w *world) {
			w.object.Spec.CSI.Secrets.ControllerModify = &stowagev1alpha1.SecretReference{Name: "absent"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			change(w)
			w.open(t)
			if err := w.modify(t.Context(), "1"); !errors.Is(err, backend.Unavailable) {
				t.Errorf("it has %v", err)
			}
		})
	}
}
