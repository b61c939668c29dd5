package gce

import (
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

// handleOfImage is the handle of the image of VolumeSnapshot a.
const handleOfImage = "projects/" + project + "/global/images/snapshot-a"

// asImage asks for an image as the snapshot of VolumeSnapshot a.
func asImage() backend.SnapshotRequest {
	request := ofA()
	request.Parameters = map[string]string{"snapshot-type": "images"}
	return request
}

// image makes it, or says how far it is.
func (w *world) image(on *gceBackend) error {
	made, err := on.CreateSnapshot(w.Context(), asImage())
	return untilReady(made, err)
}

func withImage(w *world, on *gceBackend) {
	withVolume(w, on)
	w.must(w.untilFinal(func() error { return w.image(on) }))
}

// images are those of the project.
func (w *world) images() []*compute.Image {
	w.Helper()
	list, err := w.compute.Images.List(project).Do()
	w.must(err)
	return list.Items
}

func TestAnImageIsASnapshotThatIsRestored(t *testing.T) {
	w := newWorld(t)
	on := w.open(func(spec *stowagev1alpha1.GCEBackend) { spec.EncryptionKey = oneKey })
	withVolume(w, on)
	request := asImage()
	request.Parameters["image-family"], request.Parameters["storage-locations"], request.Parameters["labels"] = "golden", "europe-west3", "tier=gold"
	var made *backend.Snapshot
	w.must(w.untilFinal(func() (err error) { made, err = on.CreateSnapshot(t.Context(), request); return untilReady(made, err) }))

	image := w.images()[0]
	if made.Handle != handleOfImage || made.RestoreSize.String() != "10Gi" {
		t.Errorf("it is %+v", made)
	}
	if image.Family != "golden" || image.StorageLocations[0] != "europe-west3" || image.Labels["tier"] != "gold" || image.Labels["stowage-backend"] != "cloud" ||
		!strings.Contains(image.Description, `"volume":"pvc-1"`) || image.ImageEncryptionKey.KmsKeyName != oneKey {
		t.Errorf("the image is %+v", image)
	}
	restoring := w.restoring("2")
	restoring.Source = &backend.Source{Snapshot: handleOfImage}
	for range 2 {
		w.mustProvision(on, restoring)
	}
	if disk := w.mustHaveOne("pvc-2"); cloud.PathOf(disk.SourceImage) != handleOfImage || disk.SourceSnapshot != "" {
		t.Errorf("the restored disk is %+v", disk)
	}
	restoring.Source.Snapshot = handleOfA
	_, err := w.provision(on, restoring)
	w.mustBe(err, backend.Conflict, "not from what the claim names")
}

func TestAnImageIsListedKeptAndRemovedByItsHandle(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	withImage(w, on)
	w.must(w.untilFinal(func() error { return on.RetainSnapshot(t.Context(), handleOfImage) }))
	held, err := on.List(t.Context())
	w.must(err)
	if len(held) != 2 || held[1].ID != handleOfImage || held[1].Snapshot != "a" || !held[1].Retained {
		t.Errorf("it lists %+v", held)
	}
	found, err := on.FindSnapshot(t.Context(), handleOfImage)
	if err != nil || !found.Ready {
		t.Errorf("it finds %+v, %v", found, err)
	}

	// There is no snapshot of that name.
	w.must(w.untilFinal(func() error { return on.DeleteSnapshot(t.Context(), handleOfA) }))
	if len(w.images()) != 1 {
		t.Error("the image is gone")
	}
	w.must(w.untilFinal(func() error { return on.DeleteSnapshot(t.Context(), handleOfImage) }))
	if len(w.images()) != 0 {
		t.Error("the image is there")
	}
}

func TestAnImageOfAnotherOwnerIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	withImage(w, w.open())
	other := w.openAs(w.newKind("another"), "cloud")
	w.mustBe(other.DeleteSnapshot(t.Context(), handleOfImage), backend.Conflict, "belongs to another cluster")
	w.mustBe(other.RetainSnapshot(t.Context(), handleOfImage), backend.Conflict, "belongs to another cluster")
	_, err := other.CreateSnapshot(t.Context(), asImage())
	w.mustBe(err, backend.Conflict, "belongs to another cluster")
	if len(w.images()) != 1 {
		t.Error("the image is gone")
	}
}

func TestAnImageOfADiskInUseIsMadeOnceNoNodeHasIt(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.mustAttach(on, id, node("node-1"), false)
	w.mustBe(w.image(on), backend.Unavailable, "end the pods that have the volume, or use a VolumeSnapshotClass that makes snapshots")
	if len(w.images()) != 0 {
		t.Error("an image was made")
	}
	w.mustDetach(on, id, node("node-1"))

	w.must(w.untilFinal(func() error { return w.image(on) }))
}

func TestAnImageThatIsNotWantedAnyMoreIsNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.mustAttach(on, id, node("node-1"), false)
	request := asImage()
	request.Unwanted = true

	_, err := on.CreateSnapshot(t.Context(), request)

	w.mustBe(err, backend.NotFound, "snapshot "+handleOfImage+" was never made")
}

func TestWhatIsMadeAgainHasTheHandleThatIsRecorded(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	withVolume(w, on)
	request := ofA()
	request.Handle = handleOfImage
	var made *backend.Snapshot
	w.must(w.untilFinal(func() (err error) { made, err = on.CreateSnapshot(t.Context(), request); return untilReady(made, err) }))
	if made.Handle != handleOfImage || len(w.snapshots()) != 0 {
		t.Errorf("it is %+v, and there are %d snapshots", made, len(w.snapshots()))
	}
}

func TestAnImageThatWasBegunIsFoundWhateverItsClassSaysNow(t *testing.T) {
	w := newWorld(t)
	w.inProgressAtOnce()
	on := w.open()
	withVolume(w, on)
	w.inject(gcemock.Fault{Method: "images.insert", Stuck: true})
	w.mustBe(w.image(on), backend.InProgress)
	made, err := on.CreateSnapshot(t.Context(), ofA())
	if err != nil || made.Handle != handleOfImage || made.Ready {
		t.Errorf("it is %+v, %v", made, err)
	}
	w.removeFaults()
	w.must(w.untilFinal(func() error { return w.image(on) }))
	if len(w.snapshots()) != 0 {
		t.Error("a snapshot was made, too")
	}
}
