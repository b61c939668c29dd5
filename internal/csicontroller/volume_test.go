package csicontroller_test

import (
	"errors"
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/backend/named"
	"github.com/stowage-dev/stowage/internal/message"
)

// ofClaim is the id of a volume that the manager made for a claim.
const ofClaim = "pvc-6f0c2f2e-aaaa-4c5e-9d1e-0123456789ab"

func TestARepeatIsForTheSameVolume(t *testing.T) {
	w := serve(t)
	if first, again := w.made(t, asking("a", mebibyte)), w.made(t, asking("a", mebibyte)); first != again || !named.IsVolume(first) {
		t.Errorf("it made %s and %s", first, again)
	}
	larger, device, elsewhere := asking("a", 2*mebibyte), asking("a", mebibyte), asking("a", mebibyte)
	device.VolumeCapabilities[0].AccessType = &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}
	for _, other := range []*csispec.CreateVolumeRequest{larger, device, copying("a", w.made(t, asking("b", mebibyte)), "")} {
		_, err := w.CreateVolume(t.Context(), other)
		mustBe(t, err, codes.AlreadyExists)
	}
	elsewhere.Parameters[stowagev1alpha1.BackendParameter] = "others"
	_, err := w.CreateVolume(t.Context(), elsewhere)
	mustBe(t, err, codes.InvalidArgument)
	if w.storage.Len() != 2 {
		t.Errorf("there are %d volumes", w.storage.Len())
	}
}

func TestAVolumeBeyondItsLimitIsNotKept(t *testing.T) {
	w := serveAs(t, func(storage *fake.Backend) backend.Backend { return rounding{storage} })
	_, err := w.CreateVolume(t.Context(), asking("a", mebibyte))
	mustBe(t, err, codes.OutOfRange)
	if w.storage.Len() > 0 {
		t.Error("the volume stays")
	}
	unlimited := asking("a", mebibyte)
	unlimited.CapacityRange.LimitBytes = 0
	id := w.made(t, unlimited)
	_, err = w.CreateVolume(t.Context(), asking("a", mebibyte))
	mustBe(t, err, codes.AlreadyExists)
	if !w.storage.Has(id) {
		t.Error("the volume of another call was removed")
	}
}

func TestErrorsOfTheBackendBecomeCodes(t *testing.T) {
	w := serve(t)
	for kind, code := range map[backend.ErrorKind]codes.Code{
		backend.Invalid: codes.InvalidArgument, backend.Exhausted: codes.ResourceExhausted, backend.NotReady: codes.Unavailable,
		backend.Unavailable: codes.Unavailable, backend.Conflict: codes.AlreadyExists, backend.WrongNode: codes.NotFound,
	} {
		w.storage.FailNext(kind.Errorf("because"))
		_, err := w.CreateVolume(t.Context(), asking("a", mebibyte))
		mustBe(t, err, code)
	}
	w.storage.FailNext(errors.New(strings.Repeat("cause unknown ", 10_000)))
	_, err := w.CreateVolume(t.Context(), asking("a", mebibyte))
	mustBe(t, err, codes.Internal)
	if said := status.Convert(err).Message(); len(said) > message.MaxStatus {
		t.Errorf("the message has %d bytes", len(said))
	}
}

func TestACallThatGoesOnIsRepeated(t *testing.T) {
	w := serve(t)
	w.storage.FailNext(backend.InProgress.Errorf("wait"))
	w.made(t, asking("a", mebibyte))
}

func TestASecondCallForAVolumeIsRefusedWhileOneIsPending(t *testing.T) {
	w := serve(t)
	release := w.storage.HoldOnly("Provision")
	first := make(chan error, 1)
	go func() {
		_, err := w.CreateVolume(t.Context(), asking("a", mebibyte))
		first <- err
	}()
	for len(w.storage.Calls()) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("the first call never began")
		}
	}
	_, err := w.CreateVolume(t.Context(), asking("a", mebibyte))
	mustBe(t, err, codes.Aborted)
	release()
	mustBe(t, <-first, codes.OK)
}

func TestWhatNoCallMadeIsLeftAlone(t *testing.T) {
	w := serve(t)
	w.storage.Begin(ofClaim, backend.Request{Claim: stowagev1alpha1.ClaimReference{Namespace: "team", Name: "data", UID: types.UID(strings.TrimPrefix(ofClaim, "pvc-"))}})
	mustBe(t, w.delete(t.Context(), ofClaim), codes.FailedPrecondition)
	_, err := w.ControllerExpandVolume(t.Context(), &csispec.ControllerExpandVolumeRequest{VolumeId: ofClaim, CapacityRange: &csispec.CapacityRange{RequiredBytes: mebibyte}})
	mustBe(t, err, codes.NotFound)
	_, err = w.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{VolumeId: ofClaim, NodeId: "node-1", VolumeCapability: writer()})
	mustBe(t, err, codes.NotFound)
	_, err = w.ControllerUnpublishVolume(t.Context(), &csispec.ControllerUnpublishVolumeRequest{VolumeId: ofClaim, NodeId: "node-1"})
	mustBe(t, err, codes.FailedPrecondition)
	_, err = w.CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "s", SourceVolumeId: ofClaim})
	mustBe(t, err, codes.NotFound)
	_, err = w.DeleteSnapshot(t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: "projects/demo/global/snapshots/snapshot-6f0c2f2e-aaaa-4c5e-9d1e-0123456789ab"})
	mustBe(t, err, codes.FailedPrecondition)
	_, err = w.CreateVolume(t.Context(), copying("copy", ofClaim, ""))
	mustBe(t, err, codes.NotFound)
	list, err := w.ListVolumes(t.Context(), &csispec.ListVolumesRequest{})
	if err != nil || len(list.GetEntries()) > 0 {
		t.Errorf("listed are %v: %v", list.GetEntries(), err)
	}
	if calls := w.storage.Calls(); len(calls) > 0 || !w.storage.Has(ofClaim) {
		t.Errorf("the storage was called for %v", calls)
	}
}

func TestWhatWasNeverMadeCanBeDeleted(t *testing.T) {
	w := serve(t)
	for _, id := range []string{"no-id-of-ours", backend.VolumeID(named.UID("", "", "", "never"), 1)} {
		mustBe(t, w.delete(t.Context(), id), codes.OK)
	}
}

func TestVolumesAreListedInPages(t *testing.T) {
	w := serve(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		w.made(t, asking(name, mebibyte))
	}
	seen, token := map[string]bool{}, ""
	for page := 0; page == 0 || token != ""; page++ {
		list, err := w.ListVolumes(t.Context(), &csispec.ListVolumesRequest{MaxEntries: 2, StartingToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range list.GetEntries() {
			seen[entry.GetVolume().GetVolumeId()] = true
		}
		token = list.GetNextToken()
		if page == 0 {
			// The last of a page may be gone when the next is asked for.
			mustBe(t, w.delete(t.Context(), token), codes.OK)
		}
	}
	if len(seen) != 5 {
		t.Errorf("listed were %v", seen)
	}
	_, err := w.ListVolumes(t.Context(), &csispec.ListVolumesRequest{StartingToken: "invalid-token"})
	mustBe(t, err, codes.Aborted)
}

func TestAVolumeIsAttachedToOneNode(t *testing.T) {
	w := serve(t)
	publish := func(id, node string, readOnly bool) error {
		_, err := w.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
			VolumeId: id, NodeId: node, Readonly: readOnly, VolumeCapability: writer(),
		})
		return err
	}
	id := w.made(t, asking("a", mebibyte))
	mustBe(t, publish(id, "node-1", false), codes.OK)
	mustBe(t, publish(id, "node-1", false), codes.OK)
	mustBe(t, publish(id, "node-1", true), codes.AlreadyExists)
	mustBe(t, publish(id, "node-2", false), codes.FailedPrecondition)
	mustBe(t, publish(id, "nowhere", false), codes.NotFound)

	_, err := w.ControllerUnpublishVolume(t.Context(), &csispec.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: "node-1"})
	mustBe(t, err, codes.OK)
	mustBe(t, publish(id, "node-2", false), codes.OK)
	w.refer(t, id)
	_, err = w.ControllerUnpublishVolume(t.Context(), &csispec.ControllerUnpublishVolumeRequest{VolumeId: id})
	mustBe(t, err, codes.FailedPrecondition)
	mustBe(t, w.delete(t.Context(), id), codes.FailedPrecondition)
	if on := w.storage.AttachedTo(id); len(on) != 1 {
		t.Errorf("it is attached to %v", on)
	}
	w.forget(t, id)
	_, err = w.ControllerUnpublishVolume(t.Context(), &csispec.ControllerUnpublishVolumeRequest{VolumeId: id})
	mustBe(t, err, codes.OK)
	if on := w.storage.AttachedTo(id); len(on) > 0 {
		t.Errorf("it is attached to %v", on)
	}
}

func TestReadersOfSeveralNodesShareAVolume(t *testing.T) {
	w := serve(t)
	id := w.made(t, asking("a", mebibyte))
	reader := writer()
	reader.AccessMode.Mode = csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	for _, node := range []string{"node-1", "node-2"} {
		_, err := w.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: reader})
		mustBe(t, err, codes.OK)
	}
	if on := w.storage.AttachedTo(id); len(on) != 2 {
		t.Errorf("it is attached to %v", on)
	}
}

func TestAVolumeGrows(t *testing.T) {
	w := serve(t)
	id := w.made(t, asking("a", mebibyte))
	grown, err := w.ControllerExpandVolume(t.Context(), &csispec.ControllerExpandVolumeRequest{
		VolumeId: id, CapacityRange: &csispec.CapacityRange{RequiredBytes: 2 * mebibyte},
	})
	if err != nil || grown.GetCapacityBytes() != 2*mebibyte {
		t.Errorf("it has %d bytes: %v", grown.GetCapacityBytes(), err)
	}
}

func TestACopyHasASource(t *testing.T) {
	w := serve(t)
	_, err := w.CreateVolume(t.Context(), copying("copy", backend.VolumeID(named.UID("", "", "", "never"), 1), ""))
	mustBe(t, err, codes.NotFound)
	source := w.made(t, asking("a", mebibyte))
	if made := w.storage.Source(w.made(t, copying("copy", source, ""))); made == nil || made.ID != source {
		t.Errorf("its source is %+v", made)
	}
	_, err = w.CreateVolume(t.Context(), asking("copy", mebibyte))
	mustBe(t, err, codes.AlreadyExists)

	mustBe(t, w.delete(t.Context(), source), codes.OK)
	w.made(t, copying("copy", source, "")) // a repeat, after the source is gone
	_, err = w.CreateVolume(t.Context(), copying("late", source, ""))
	mustBe(t, err, codes.NotFound)
}

func TestNothingIsMadeInAStorageBackendThatIsBeingDeleted(t *testing.T) {
	w := serve(t)
	object := disks()
	if err := w.cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	object.Finalizers = []string{"stowage.dev/test"}
	if err := errors.Join(w.cluster.Update(t.Context(), object), w.cluster.Delete(t.Context(), object)); err != nil {
		t.Fatal(err)
	}
	_, err := w.CreateVolume(t.Context(), asking("a", mebibyte))
	mustBe(t, err, codes.FailedPrecondition)
}

func TestARequestThatContradictsItselfIsRefused(t *testing.T) {
	for what, change := range map[string]func(*csispec.CreateVolumeRequest){
		"no name":                         func(req *csispec.CreateVolumeRequest) { req.Name = "" },
		"a name that is too long":         func(req *csispec.CreateVolumeRequest) { req.Name = strings.Repeat("a", 129) },
		"no capability":                   func(req *csispec.CreateVolumeRequest) { req.VolumeCapabilities = nil },
		"a capability without a type":     func(req *csispec.CreateVolumeRequest) { req.VolumeCapabilities[0].AccessType = nil },
		"an access mode that nothing has": func(req *csispec.CreateVolumeRequest) { req.VolumeCapabilities[0].AccessMode = nil },
		"a parameter that nothing knows":  func(req *csispec.CreateVolumeRequest) { req.Parameters["other"] = "a" },
		"two file systems": func(req *csispec.CreateVolumeRequest) {
			req.VolumeCapabilities[0].GetMount().FsType, req.Parameters[stowagev1alpha1.FSTypeParameter] = "ext4", "xfs"
		},
		"a mount and a device": func(req *csispec.CreateVolumeRequest) {
			device := writer()
			device.AccessType = &csispec.VolumeCapability_Block{Block: &csispec.VolumeCapability_BlockVolume{}}
			req.VolumeCapabilities = append(req.VolumeCapabilities, device)
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := serve(t)
			req := asking("a", mebibyte)
			change(req)
			_, err := w.CreateVolume(t.Context(), req)
			mustBe(t, err, codes.InvalidArgument)
			if w.storage.Len() > 0 {
				t.Error("a volume was made")
			}
		})
	}
}
