package sanity_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

// newServer serves a backend in memory, in a cluster of two nodes.
func newServer() (*controller, *fake.Backend) {
	memory := fake.New()
	return newController(controllerOptions{
		Driver: stowagev1alpha1.GCEDriver, Name: "disks", Backend: memory, Patience: time.Second,
		Node: func(_ context.Context, name string) (*corev1.Node, error) {
			if name != "node-1" && name != "node-2" {
				return nil, nil
			}
			return fixture.Node(name), nil
		},
	}), memory
}

func asking(name string, bytes int64) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes, LimitBytes: bytes},
		VolumeCapabilities: []*csi.VolumeCapability{writer()}, Parameters: map[string]string{stowagev1alpha1.BackendParameter: "disks"},
	}
}

func writer() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
}

// made makes a volume and returns its id.
func made(t *testing.T, s *controller, req *csi.CreateVolumeRequest) string {
	t.Helper()
	response, err := s.CreateVolume(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return response.GetVolume().GetVolumeId()
}

func mustBe(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestARepeatIsForTheSameVolume(t *testing.T) {
	s, _ := newServer()
	if first, again := made(t, s, asking("a", mebibyte)), made(t, s, asking("a", mebibyte)); first != again {
		t.Errorf("it made %s and %s", first, again)
	}
	_, err := s.CreateVolume(t.Context(), asking("a", 2*mebibyte))
	mustBe(t, err, codes.AlreadyExists)
	if left := s.left(); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
}

func TestANameThatIsUsedAgainIsForAnotherVolume(t *testing.T) {
	s, _ := newServer()
	first := made(t, s, asking("a", mebibyte))
	_, err := s.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: first})
	mustBe(t, err, codes.OK)
	if again := made(t, s, asking("a", mebibyte)); first == again {
		t.Errorf("it made %s again", again)
	}
}

func TestErrorsOfTheBackendBecomeCodes(t *testing.T) {
	for kind, code := range map[backend.ErrorKind]codes.Code{
		backend.Invalid: codes.InvalidArgument, backend.Exhausted: codes.ResourceExhausted,
		backend.Unavailable: codes.Unavailable, backend.Conflict: codes.AlreadyExists,
	} {
		s, memory := newServer()
		memory.FailNext(kind.Errorf("because"))
		_, err := s.CreateVolume(t.Context(), asking("a", mebibyte))
		mustBe(t, err, code)
	}
	s, memory := newServer()
	memory.FailNext(errors.New("cause unknown"))
	_, err := s.CreateVolume(t.Context(), asking("a", mebibyte))
	mustBe(t, err, codes.Internal)
}

func TestACallThatGoesOnIsRepeated(t *testing.T) {
	s, memory := newServer()
	memory.FailNext(backend.InProgress.Errorf("wait"))
	made(t, s, asking("a", mebibyte))
}

func TestAVolumeIsAttachedToOneNode(t *testing.T) {
	s, _ := newServer()
	publish := func(id, node string, readOnly bool) error {
		_, err := s.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{
			VolumeId: id, NodeId: node, Readonly: readOnly, VolumeCapability: writer(),
		})
		return err
	}
	id := made(t, s, asking("a", mebibyte))
	mustBe(t, publish(id, "node-1", false), codes.OK)
	mustBe(t, publish(id, "node-1", false), codes.OK)
	mustBe(t, publish(id, "node-1", true), codes.AlreadyExists)
	mustBe(t, publish(id, "node-2", false), codes.FailedPrecondition)
	mustBe(t, publish(id, "nowhere", false), codes.NotFound)
	mustBe(t, publish("pvc-other", "node-1", false), codes.NotFound)

	_, err := s.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id})
	mustBe(t, err, codes.FailedPrecondition)
	_, err = s.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id})
	mustBe(t, err, codes.OK)
	mustBe(t, publish(id, "node-2", false), codes.OK)
}

func TestVolumesAreListedInPages(t *testing.T) {
	s, _ := newServer()
	for _, name := range []string{"a", "b", "c"} {
		made(t, s, asking(name, mebibyte))
	}
	seen, token := map[string]bool{}, ""
	for page := 0; page == 0 || token != ""; page++ {
		list, err := s.ListVolumes(t.Context(), &csi.ListVolumesRequest{MaxEntries: 2, StartingToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range list.GetEntries() {
			seen[entry.GetVolume().GetVolumeId()] = true
		}
		token = list.GetNextToken()
	}
	if len(seen) != 3 {
		t.Errorf("listed were %v", seen)
	}
	_, err := s.ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: "invalid-token"})
	mustBe(t, err, codes.Aborted)
}

func TestACopyHasASource(t *testing.T) {
	s, _ := newServer()
	copyOf := func(id string) *csi.CreateVolumeRequest {
		req := asking("copy", mebibyte)
		req.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id},
		}}
		return req
	}
	_, err := s.CreateVolume(t.Context(), copyOf("pvc-other"))
	mustBe(t, err, codes.NotFound)
	made(t, s, copyOf(made(t, s, asking("a", mebibyte))))
	_, err = s.CreateVolume(t.Context(), asking("copy", mebibyte))
	mustBe(t, err, codes.AlreadyExists)
}

func TestWhatWasNeverMadeCanBeDeleted(t *testing.T) {
	s, memory := newServer()
	for _, id := range []string{"no-id-of-ours", "pvc-", "pvc-6f0c2f2e-aaaa-4c5e-9d1e-0123456789ab"} {
		_, err := s.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id})
		mustBe(t, err, codes.OK)
	}
	if calls := memory.Calls(); len(calls) != 1 {
		t.Errorf("the backend was called for %v", calls)
	}
}
