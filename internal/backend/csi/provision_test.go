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
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

func TestAVolumeIsRequestedWithAllThatItsClassAndBackendSay(t *testing.T) {
	w := newWorld(t)
	w.secrets["maker"] = map[string][]byte{"password": []byte("hush")}
	w.object.Spec.CSI.Parameters = map[string]stowagev1alpha1.CSIParameter{"pool": "a", "tier": "fast"}
	w.object.Spec.CSI.Secrets.Provision = &stowagev1alpha1.SecretReference{Name: "maker"}
	w.object.Spec.CSI.FSType = "xfs"
	w.open(t)
	request := backendtest.Request("1")
	request.Parameters, request.MountOptions = map[string]string{"pool": "b", "color": "red"}, []string{"noatime"}
	made, err := w.Provision(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	asked := did[*csispec.CreateVolumeRequest](w.driver)[0]
	mount := asked.GetVolumeCapabilities()[0].GetMount()
	switch {
	case asked.GetName() != request.ID, asked.GetCapacityRange().GetRequiredBytes() != 1<<20:
		t.Errorf("requested is %q with %d bytes", asked.GetName(), asked.GetCapacityRange().GetRequiredBytes())
	case !maps.Equal(asked.GetParameters(), map[string]string{"pool": "a", "tier": "fast", "color": "red"}):
		t.Errorf("its parameters are %v", asked.GetParameters())
	case asked.GetSecrets()["password"] != "hush":
		t.Error("it has no secret")
	case mount.GetFsType() != "xfs" || mount.GetMountFlags()[0] != "noatime":
		t.Errorf("its mount is %v", mount)
	case made.FSType != "xfs" || made.Attributes["array"] != "a" || made.Handle != request.ID || made.NodeAffinity != nil:
		t.Errorf("made is %+v", made)
	}
}

func TestAccessModesHaveTheirNamesInCSI(t *testing.T) {
	for name, test := range map[string]struct {
		mode          corev1.PersistentVolumeAccessMode
		distinguishes bool
		want          csispec.VolumeCapability_AccessMode_Mode
	}{
		"one node":            {corev1.ReadWriteOnce, false, csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		"one pod":             {corev1.ReadWriteOncePod, false, csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		"many pods of a node": {corev1.ReadWriteOnce, true, csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
		"one pod of a node":   {corev1.ReadWriteOncePod, true, csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER},
		"readers":             {corev1.ReadOnlyMany, false, csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY},
		"writers":             {corev1.ReadWriteMany, true, csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if test.distinguishes {
				w.abilities = append(w.abilities, csispec.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)
			}
			request := backendtest.Request("1")
			request.AccessModes, request.VolumeMode = []corev1.PersistentVolumeAccessMode{test.mode}, corev1.PersistentVolumeBlock
			if _, err := w.Provision(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			got := did[*csispec.CreateVolumeRequest](w.driver)[0].GetVolumeCapabilities()
			if len(got) != 1 || got[0].GetAccessMode().GetMode() != test.want || got[0].GetBlock() == nil {
				t.Errorf("requested is %v", got)
			}
		})
	}
}

func TestACodeSaysWhetherTheStorageMayExist(t *testing.T) {
	for code, want := range map[codes.Code]backend.ErrorKind{
		codes.Aborted: backend.InProgress, codes.DeadlineExceeded: backend.InProgress,
		codes.Canceled: "", codes.Unavailable: "", codes.Internal: "", codes.Unknown: "", codes.DataLoss: "", codes.Code(99): "",
		codes.ResourceExhausted: backend.Exhausted, codes.AlreadyExists: backend.Conflict,
		codes.InvalidArgument: backend.Invalid, codes.NotFound: backend.Invalid, codes.Unimplemented: backend.Invalid,
		codes.OutOfRange: backend.Invalid, codes.PermissionDenied: backend.Unavailable, codes.Unauthenticated: backend.Unavailable, codes.FailedPrecondition: backend.Unavailable,
	} {
		t.Run(code.String(), func(t *testing.T) {
			w := newWorld(t)
			w.answersTo("CreateVolume", status.Error(code, strings.Repeat("no ", 5000)))
			_, err := w.Provision(t.Context(), backendtest.Request("1"))
			if got := backend.KindOf(err); err == nil || got != want {
				t.Errorf("it is %q: %v", got, err)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("its message has %d bytes", len(err.Error()))
			}
		})
	}
}

// answersTo makes the driver answer calls of a method with an error, without an effect.
func (w *world) answersTo(method string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = func(request any) error {
		if strings.HasSuffix(typeName(request), method+"Request") {
			return err
		}
		return nil
	}
}

// loses makes the driver lose the answers of a method, after its effect.
func (w *world) loses(method string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = func(request any) error {
		if strings.HasSuffix(typeName(request), method+"Request") {
			return status.Error(codes.Unavailable, "the connection is gone")
		}
		return nil
	}
}

func (w *world) works() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.after, w.lies = nil, nil, nil
}

func TestARepeatFindsTheVolumeOfALostAnswer(t *testing.T) {
	w := newWorld(t)
	w.loses("CreateVolume")
	if _, err := w.Provision(t.Context(), backendtest.Request("1")); err == nil || backend.KindOf(err) != "" {
		t.Fatalf("of a lost answer the outcome isn't unknown: %v", err)
	}
	w.works()
	made, err := w.Provision(t.Context(), backendtest.Request("1"))
	if err != nil || made.Handle != backendtest.Request("1").ID || len(w.volumes) != 1 {
		t.Errorf("the repeat has %+v, %v, of %d volumes", made, err, len(w.volumes))
	}
}

func TestAVolumeThatCannotBeUsedIsRemoved(t *testing.T) {
	for name, lie := range map[string]func(*csispec.Volume){
		"one that is too small":         func(v *csispec.Volume) { v.CapacityBytes = 1 },
		"one with a negative size":      func(v *csispec.Volume) { v.CapacityBytes = -1 },
		"one with endless attributes":   func(v *csispec.Volume) { v.VolumeContext = map[string]string{"a": strings.Repeat("x", 1<<20)} },
		"a copy that was not asked for": func(v *csispec.Volume) { v.ContentSource = copyOf("other") },
		"one in a place that is no label": func(v *csispec.Volume) {
			v.AccessibleTopology = []*csispec.Topology{{Segments: map[string]string{"a b": "c"}}}
		},
		"one in endless places": func(v *csispec.Volume) { v.AccessibleTopology = make([]*csispec.Topology, 5000) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.lies = lie
			_, err := w.Provision(t.Context(), backendtest.Request("1"))
			if !errors.Is(err, backend.Invalid) || len(err.Error()) > 1000 {
				t.Errorf("the answer is %v", err)
			}
			if w.has(backendtest.Request("1").ID) {
				t.Error("its storage is left behind")
			}
		})
	}
}

func TestAVolumeWithoutAnIDKeepsItsIntent(t *testing.T) {
	for name, id := range map[string]string{"no id": "", "an endless id": strings.Repeat("x", 1<<20)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.lies = func(v *csispec.Volume) { v.VolumeId = id }
			if _, err := w.Provision(t.Context(), backendtest.Request("1")); !errors.Is(err, backend.InProgress) {
				t.Errorf("the answer is %v", err)
			}
			if err := w.undo(t.Context()); !errors.Is(err, backend.InProgress) {
				t.Errorf("the undo has %v", err)
			}
			w.works()
			if err := w.undo(t.Context()); err != nil || w.has(backendtest.Request("1").ID) {
				t.Errorf("at last the undo has %v", err)
			}
		})
	}
}

func TestAVolumeThatCannotBeUsedNorRemovedKeepsItsIntent(t *testing.T) {
	w := newWorld(t)
	w.lies = func(v *csispec.Volume) { v.CapacityBytes = 1 }
	w.answersTo("DeleteVolume", status.Error(codes.Internal, "not now"))
	if _, err := w.Provision(t.Context(), backendtest.Request("1")); !errors.Is(err, backend.InProgress) {
		t.Errorf("the answer is %v", err)
	}
}

func (w *world) undo(ctx context.Context) error {
	return backend.Undo(ctx, w.Backend, backendtest.Request("1"))
}

func TestAnUndoRemovesWhatALostAnswerMade(t *testing.T) {
	w := newWorld(t)
	w.loses("CreateVolume")
	_, _ = w.Provision(t.Context(), backendtest.Request("1"))
	if err := w.undo(t.Context()); err == nil {
		t.Error("the undo ends without an answer of the driver")
	}
	w.loses("DeleteVolume")
	if err := w.undo(t.Context()); err == nil {
		t.Error("the undo ends though the deletion has no answer")
	}
	w.works()
	if err := w.undo(t.Context()); err != nil || w.has(backendtest.Request("1").ID) {
		t.Errorf("the undo has %v", err)
	}
}

func TestAnUndoEndsOnlyIfTheDriverSaysThatNothingIsThere(t *testing.T) {
	for code, ends := range map[codes.Code]bool{
		codes.InvalidArgument: true, codes.NotFound: true, codes.OutOfRange: true,
		codes.AlreadyExists: false, codes.PermissionDenied: false, codes.Unauthenticated: false,
		codes.ResourceExhausted: false, codes.FailedPrecondition: false, codes.Unimplemented: false,
		codes.Internal: false, codes.Unavailable: false, codes.Aborted: false, codes.DeadlineExceeded: false, codes.Unknown: false,
	} {
		t.Run(code.String(), func(t *testing.T) {
			w := newWorld(t)
			w.answersTo("CreateVolume", status.Error(code, "no"))
			if err := w.undo(t.Context()); (err == nil) != ends {
				t.Errorf("it has %v", err)
			}
		})
	}
}

func TestAnUndoOfACopyWithoutItsSourceSaysWhatToLookFor(t *testing.T) {
	w, request := newWorld(t), backendtest.Request("1")
	request.Source = &backend.Source{}
	err := backend.Undo(t.Context(), w.Backend, request)
	if !errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), request.ID) || len(did[*csispec.CreateVolumeRequest](w.driver)) > 0 {
		t.Errorf("it has %v", err)
	}
	request.Source.ID = "a volume that is gone"
	w.answersTo("CreateVolume", status.Error(codes.NotFound, "the source"))
	if err := backend.Undo(t.Context(), w.Backend, request); !errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), request.ID) {
		t.Errorf("with its name it has %v", err)
	}
}

func TestOnlyAnAnswerOfCreateVolumeIsARefusal(t *testing.T) {
	for code, is := range map[codes.Code]bool{codes.InvalidArgument: true, codes.OutOfRange: true, codes.Unimplemented: false, codes.AlreadyExists: false, codes.Unknown: false} {
		w := newWorld(t)
		w.answersTo("CreateVolume", status.Error(code, "no"))
		if _, err := w.Provision(t.Context(), backendtest.Request("1")); err == nil || backend.IsRefusal(err) != is {
			t.Errorf("%s: %v", code, err)
		}
	}
	w := newWorld(t)
	w.driver.name = "other.example.com"
	if _, err := w.Provision(t.Context(), backendtest.Request("1")); !errors.Is(err, backend.Invalid) || backend.IsRefusal(err) {
		t.Errorf("of a driver that isn't asked: %v", err)
	}
}

func TestAVolumeIsACopyOfAnother(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Provision(t.Context(), backendtest.Request("1")); err != nil {
		t.Fatal(err)
	}
	request := backendtest.Request("2")
	request.Source = &backend.Source{ID: backendtest.Request("1").ID}
	if _, err := w.Provision(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	made := did[*csispec.CreateVolumeRequest](w.driver)
	if got := made[len(made)-1].GetVolumeContentSource().GetVolume().GetVolumeId(); got != request.Source.ID {
		t.Errorf("requested is a copy of %q", got)
	}
	absent := backendtest.Request("3")
	absent.Source = &backend.Source{ID: "absent"}
	if _, err := w.Provision(t.Context(), absent); !errors.Is(err, backend.Invalid) || w.has(absent.ID) {
		t.Errorf("of an absent source the answer is %v", err)
	}
	w.lies = func(v *csispec.Volume) { v.ContentSource = nil }
	forgotten := backendtest.Request("4")
	forgotten.Source = request.Source
	if _, err := w.Provision(t.Context(), forgotten); !errors.Is(err, backend.Invalid) || w.has(forgotten.ID) {
		t.Errorf("of an empty volume in place of a copy the answer is %v", err)
	}
}

func copyOf(id string) *csispec.VolumeContentSource {
	return &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Volume{
		Volume: &csispec.VolumeContentSource_VolumeSource{VolumeId: id},
	}}
}
