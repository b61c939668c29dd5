package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
)

var _ = Describe("A VolumeSnapshotContent", func() {
	It("gets a snapshot, with the parameters of its class", func() {
		w, content := toBeSnapshotted()

		w.settleSnapshots()

		w.get(content)
		Expect(*content.Status.SnapshotHandle).To(Equal("snapshots/snapshot-u1"))
		Expect(*content.Status.ReadyToUse).To(BeTrue())
		Expect(*content.Status.CreationTime).To(BeEquivalentTo(1e9))
		Expect(*content.Status.RestoreSize).To(BeEquivalentTo(1 << 30))
		Expect(content.Annotations).NotTo(HaveKey(snapshots.BeingCreated))
		Expect(w.storage.Snapshots()).To(Equal(map[string]map[string]string{"snapshots/snapshot-u1": {"tier": "cold"}}))
	})

	It("is ready once the storage has uploaded it", func() {
		w, content := toBeSnapshotted()
		w.storage.SetUploading(true)
		w.settleSnapshots()
		w.get(content)
		Expect(*content.Status.ReadyToUse).To(BeFalse())
		Expect(content.Annotations).NotTo(HaveKey(snapshots.BeingCreated))

		w.storage.SetUploading(false)
		w.settleSnapshots()

		w.get(content)
		Expect(*content.Status.ReadyToUse).To(BeTrue())
	})

	It("finds the snapshot of a call whose answer was lost", func() {
		w, content := toBeSnapshotted()
		w.driver.HalfNext(errors.New("the connection broke"))
		_ = w.reconcileSnapshots()
		w.get(content)
		Expect(content.Annotations).To(HaveKey(snapshots.BeingCreated))
		Expect(*content.Status.Error.Message).To(Equal("the connection broke"))
		Expect(content.Status.SnapshotHandle).To(BeNil())

		w.restart()
		w.settleSnapshots()

		w.get(content)
		Expect(*content.Status.ReadyToUse).To(BeTrue())
		Expect(content.Status.Error).To(BeNil())
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	DescribeTable("leaks nothing and loses nothing at a crash",
		func(of fault, begin func() (*world, *snapshotv1.VolumeSnapshotContent)) {
			for number := range 3 {
				w, content := begin()
				w.faults = map[int]fault{w.written + number: of}
				w.settleSnapshotsAfterCrashes()
				w.get(content)
				Expect(*content.Status.ReadyToUse).To(BeTrue(), "write %d", number)
				Expect(content.Annotations).NotTo(HaveKey(snapshots.BeingCreated))

				w.deleteAsSnapshotController(content)
				w.faults = map[int]fault{w.written + number: of}
				w.settleSnapshotsAfterCrashes()
				Expect(w.gone(content)).To(BeTrue(), "write %d", number)
				Expect(w.storage.Snapshots()).To(BeEmpty())
				w.empty()
			}
		},
		Entry("before a write", lost, withDriver), Entry("after a write", unanswered, withDriver), Entry("while another writes", contended, withDriver),
		Entry("before a write, with scope=classes", lost, withClasses), Entry("after a write, with scope=classes", unanswered, withClasses),
		Entry("while another writes, with scope=classes", contended, withClasses),
	)

	It("goes with its snapshot, though the answer of its making was lost", func() {
		w, content := toBeSnapshotted()
		w.driver.HalfNext(errors.New("the connection broke"))
		_ = w.reconcileSnapshots()
		w.deleteAsSnapshotController(content)

		w.settleSnapshots()

		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	DescribeTable("is made and deleted as it was begun, though its class",
		func(change func(*world, *snapshotv1.VolumeSnapshotClass)) {
			for i := range 4 {
				goes, arrives := i%2 > 0, i/2 > 0
				w, content := toBeSnapshotted()
				w.storage.SetUploading(true)
				if arrives {
					w.driver.HalfNext(errors.New("the connection broke"))
				} else {
					w.storage.FailNext(errors.New("the connection broke"))
				}
				_ = w.reconcileSnapshots()
				change(w, &snapshotv1.VolumeSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: *content.Spec.VolumeSnapshotClassName}})
				if goes {
					w.deleteAsSnapshotController(content)
				}
				w.settleSnapshots()
				w.storage.SetUploading(false)
				w.settleSnapshots()

				if goes {
					Expect(w.gone(content)).To(BeTrue())
					Expect(w.storage.Snapshots()).To(BeEmpty())
				} else {
					w.get(content)
					Expect(*content.Status.ReadyToUse).To(BeTrue())
					Expect(content.Annotations).NotTo(HaveKey(snapshots.Parameters))
					Expect(w.storage.Snapshots()).To(Equal(map[string]map[string]string{"snapshots/snapshot-u1": {"tier": "cold"}}))
				}
				w.empty()
			}
		},
		Entry("is gone", func(w *world, class *snapshotv1.VolumeSnapshotClass) { w.delete(class) }),
		Entry("was made again with other parameters", func(w *world, class *snapshotv1.VolumeSnapshotClass) {
			w.get(class)
			again := &snapshotv1.VolumeSnapshotClass{
				ObjectMeta: metav1.ObjectMeta{Name: class.Name}, Driver: class.Driver, DeletionPolicy: class.DeletionPolicy,
				Parameters: map[string]string{"tier": "hot"},
			}
			w.delete(class)
			w.create(again)
		}),
	)

	It("is kept while the outcome of its call is unknown", func() {
		w, content := toBeSnapshotted()
		w.storage.FailNext(errors.New("unknown"), errors.New("unknown"), backend.Unavailable.Errorf("busy"), backend.Exhausted.Errorf("full"), backend.Conflict.Errorf("other"))
		_ = w.reconcileSnapshots()
		w.deleteAsSnapshotController(content)
		for range 4 {
			_ = w.reconcileSnapshots()
			w.get(content)
			Expect(content.Annotations).To(HaveKey(snapshots.BeingCreated))
		}
	})

	It("goes when the storage says that there is no snapshot", func() {
		w, content := toBeSnapshotted()
		w.storage.FailNext(backend.Invalid.Errorf("such a volume has no snapshots: %s", strings.Repeat("x", 10000)))
		_ = w.reconcileSnapshots()
		w.get(content)
		Expect(content.Annotations).NotTo(HaveKey(snapshots.BeingCreated))
		Expect(len(*content.Status.Error.Message)).To(BeNumerically("<=", message.MaxStatus))
		Expect(w.newEvents()).To(ContainElement(HavePrefix("Warning SnapshotCreationFailed such a volume has no snapshots")))

		w.deleteAsSnapshotController(content)
		w.settleSnapshots()

		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	It("leaves its snapshot with policy Retain, though the cache shows Delete", func() {
		w, content := snapshotted()
		w.deleteAsSnapshotController(content)
		w.get(content)
		w.views.snapshots.Client = oldState[*snapshotv1.VolumeSnapshotContent]{w, content.DeepCopy()}
		update(w, content, func(content *snapshotv1.VolumeSnapshotContent) {
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		})

		w.settleSnapshots()

		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("is kept until snapshot-controller says that nothing restores it", func() {
		w, content := snapshotted()
		w.delete(content)

		w.settleSnapshots()

		Expect(w.gone(content)).To(BeFalse())
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("that is gone gets no snapshot by an old cache", func() {
		w, content := toBeSnapshotted()
		w.get(content)
		w.views.snapshots.Client = oldState[*snapshotv1.VolumeSnapshotContent]{w, content.DeepCopy()}
		update(w, content, func(content *snapshotv1.VolumeSnapshotContent) { content.Finalizers = nil })
		w.delete(content)

		_, err := w.snapshots.Reconcile(w.logging(), wake.Request(content))

		Expect(err).NotTo(HaveOccurred())
		Expect(w.storage.Calls()).NotTo(ContainElement(HavePrefix("CreateSnapshot")))
	})

	It("does not take the snapshot of another content with it", func() {
		w, content := snapshotted()
		other := staticContent("other", *content.Status.SnapshotHandle)
		w.create(other)
		w.settleSnapshots()
		w.deleteAsSnapshotController(content)

		w.settleSnapshots()
		Expect(w.gone(content)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(HaveLen(1))

		w.deleteAsSnapshotController(other)
		w.settleSnapshots()
		Expect(w.gone(other)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(BeEmpty())
	})

	DescribeTable("of a person that is deleted before its snapshot was recorded takes it along",
		func(number int, of fault) {
			w, content := snapshotted()
			update(w, content, func(content *snapshotv1.VolumeSnapshotContent) {
				content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
			})
			w.deleteAsSnapshotController(content)
			w.settleSnapshots()
			Expect(w.storage.Snapshots()).To(HaveLen(1))
			other := staticContent("other", *content.Status.SnapshotHandle)
			w.create(other)
			w.deleteAsSnapshotController(other)
			w.faults = map[int]fault{w.written + number: of}

			w.settleSnapshotsAfterCrashes()

			Expect(w.gone(other)).To(BeTrue())
			Expect(w.storage.Snapshots()).To(BeEmpty())
		},
		Entry("after a crash before the first write", 0, lost), Entry("after a crash after the first write", 0, unanswered),
		Entry("while another writes first", 0, contended),
		Entry("after a crash before the second write", 1, lost), Entry("after a crash after the second write", 1, unanswered),
		Entry("while another writes before the second write", 1, contended),
	)

	It("of a person that names no snapshot goes", func() {
		w, _ := snapshotted()
		missing := staticContent("missing", "snapshots/none")
		w.create(missing)
		w.settleSnapshots()
		w.deleteAsSnapshotController(missing)

		w.settleSnapshots()

		Expect(w.gone(missing)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("of a person doesn't look again for a snapshot that it deleted", func() {
		w, content := snapshotted()
		other := staticContent("other", *content.Status.SnapshotHandle)
		w.create(other)
		other.Status = &snapshotv1.VolumeSnapshotContentStatus{}
		Expect(w.direct.Status().Update(context.Background(), other)).To(Succeed())
		update(w, content, func(content *snapshotv1.VolumeSnapshotContent) {
			content.Spec.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
		})
		w.deleteAsSnapshotController(content)
		w.deleteAsSnapshotController(other)

		w.settleSnapshots()

		Expect(w.gone(other)).To(BeTrue())
		Expect(w.storage.Snapshots()).To(HaveLen(1))
	})

	It("of a person is found, and one that isn't there has an error", func() {
		w, content := snapshotted()
		found, missing := staticContent("found", *content.Status.SnapshotHandle), staticContent("missing", "snapshots/none")
		w.create(found, missing)

		w.settleSnapshots()

		w.get(found)
		Expect(*found.Status.ReadyToUse).To(BeTrue())
		w.get(missing)
		Expect(*missing.Status.ReadyToUse).To(BeFalse())
		Expect(*missing.Status.Error.Message).To(ContainSubstring("there is no snapshot"))
	})

	DescribeTable("is refused before any call",
		func(change func(*snapshotv1.VolumeSnapshotContent, *snapshotv1.VolumeSnapshotClass), says string) {
			w := newCSIWorld("classes")
			content, class := dynamicContent("u1", "v"), snapshotClass()
			change(content, class)
			w.create(content, class)

			w.settleSnapshots()

			w.get(content)
			Expect(*content.Status.Error.Message).To(ContainSubstring(says))
			Expect(content.Annotations).NotTo(HaveKey(snapshots.BeingCreated))
			Expect(w.storage.Calls()).NotTo(ContainElement(HavePrefix("CreateSnapshot")))
		},
		Entry("without a class", func(content *snapshotv1.VolumeSnapshotContent, _ *snapshotv1.VolumeSnapshotClass) {
			content.Spec.VolumeSnapshotClassName = nil
		}, "names no VolumeSnapshotClass"),
		Entry("with a class that isn't there", func(content *snapshotv1.VolumeSnapshotContent, _ *snapshotv1.VolumeSnapshotClass) {
			content.Spec.VolumeSnapshotClassName = new("absent")
		}, "VolumeSnapshotClass absent does not exist"),
		Entry("with the class of another driver", func(_ *snapshotv1.VolumeSnapshotContent, class *snapshotv1.VolumeSnapshotClass) {
			class.Driver = "other.example.com"
		}, "is of driver"),
		Entry("with a class that chooses a Secret", func(_ *snapshotv1.VolumeSnapshotContent, class *snapshotv1.VolumeSnapshotClass) {
			class.Parameters["csi.storage.k8s.io/snapshotter-secret-name"] = "theirs"
		}, "spec.csi.secrets.provision of StorageBackend "+csiDriver),
		Entry("with a class that is too large", func(_ *snapshotv1.VolumeSnapshotContent, class *snapshotv1.VolumeSnapshotClass) {
			for i := range 300 {
				class.Parameters[fmt.Sprint(i)] = "x"
			}
		}, "at most 256 parameters"),
	)

	It("of a class that names the Secret of the StorageBackend gets a snapshot", func() {
		w, content := toBeSnapshotted(func(class *snapshotv1.VolumeSnapshotClass) {
			class.Parameters["csi.storage.k8s.io/snapshotter-secret-name"] = "maker"
			class.Parameters["csi.storage.k8s.io/snapshotter-secret-namespace"] = "stowage-system"
		})

		w.settleSnapshots()

		w.get(content)
		Expect(*content.Status.ReadyToUse).To(BeTrue())
		Expect(w.storage.Snapshots()["snapshots/snapshot-u1"]).To(Equal(map[string]string{"tier": "cold"}))
	})

	DescribeTable("is left alone", func(change func(*snapshotv1.VolumeSnapshotContent)) {
		w := newCSIWorld("classes")
		content := dynamicContent("u1", "v")
		change(content)
		w.create(content, snapshotClass())

		w.settleSnapshots()

		w.get(content)
		Expect(content.Status).To(BeNil())
		Expect(w.newEvents()).To(BeEmpty())
	},
		Entry("of a driver that is not served", func(content *snapshotv1.VolumeSnapshotContent) { content.Spec.Driver = "other.example.com" }),
		Entry("of a group", func(content *snapshotv1.VolumeSnapshotContent) {
			metav1.SetMetaDataAnnotation(&content.ObjectMeta, "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle", "g")
		}),
	)

	It("gets nothing more after a snapshot was made again under its name", func() {
		w, content := toBeSnapshotted()
		w.storage.SetUploading(true)
		w.settleSnapshots()
		w.get(content)
		status := content.DeepCopy()
		status.Status.SnapshotHandle = new("snapshots/earlier")
		Expect(w.direct.Status().Patch(context.Background(), status, client.MergeFrom(content))).To(Succeed())
		w.storage.SetUploading(false)

		w.settleSnapshots()

		w.get(content)
		Expect(*content.Status.ReadyToUse).To(BeFalse())
		Expect(*content.Status.SnapshotHandle).To(Equal("snapshots/earlier"))
		Expect(*content.Status.Error.Message).To(ContainSubstring("it is not taken"))
	})
})

// toBeSnapshotted is a cluster with a volume of the driver, and the content of its snapshot to come.
func toBeSnapshotted(options ...func(*snapshotv1.VolumeSnapshotClass)) (*world, *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	w, _, pv := madeByDriver()
	class, content := snapshotClass(), dynamicContent("u1", pv.Spec.CSI.VolumeHandle)
	for _, option := range options {
		option(class)
	}
	w.create(class, content)
	return w, content
}

// withDriver is that of a CSI driver, with scope=cluster.
func withDriver() (*world, *snapshotv1.VolumeSnapshotContent) { return toBeSnapshotted() }

// withClasses is that of a cloud, with scope=classes.
func withClasses() (*world, *snapshotv1.VolumeSnapshotContent) {
	w, _, content := toBeSnapshottedByGCE(reconciler.ClassesScope)
	return w, content
}

// snapshotted is the same cluster with the snapshot.
func snapshotted() (*world, *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	w, content := toBeSnapshotted()
	w.settleSnapshots()
	w.get(content)
	Expect(w.storage.Snapshots()).To(HaveLen(1))
	w.newEvents()
	return w, content
}

func snapshotClass() *snapshotv1.VolumeSnapshotClass {
	return &snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: "cold"}, Driver: csiDriver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
		Parameters: map[string]string{"tier": "cold"},
	}
}

// dynamicContent is what snapshot-controller makes for a VolumeSnapshot with a uid.
func dynamicContent(uid, volume string) *snapshotv1.VolumeSnapshotContent {
	return &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: "snapcontent-" + uid, Finalizers: []string{snapshots.ContentProtection}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{Namespace: "default", Name: "snapshot", UID: types.UID(uid)},
			DeletionPolicy:    snapshotv1.VolumeSnapshotContentDelete, Driver: csiDriver, VolumeSnapshotClassName: new("cold"),
			Source: snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &volume}, SourceVolumeMode: new(corev1.PersistentVolumeFilesystem),
		},
	}
}

// staticContent is what a person makes for a snapshot that is there.
func staticContent(name, handle string) *snapshotv1.VolumeSnapshotContent {
	content := dynamicContent(name, "")
	content.Name, content.Spec.VolumeSnapshotClassName = name, nil
	content.Spec.Source = snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &handle}
	return content
}

// deleteAsSnapshotController deletes a content whose VolumeSnapshot was deleted.
func (w *world) deleteAsSnapshotController(content *snapshotv1.VolumeSnapshotContent) {
	GinkgoHelper()
	update(w, content, func(content *snapshotv1.VolumeSnapshotContent) {
		metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.BeingDeleted, "yes")
	})
	w.delete(content)
}

func (w *world) reconcileSnapshots() error {
	var failures []error
	for _, object := range w.all(&snapshotv1.VolumeSnapshotContentList{}) {
		_, err := w.snapshots.Reconcile(w.logging(), wake.Request(object))
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func (w *world) settleSnapshots() {
	GinkgoHelper()
	w.settleBy(w.reconcileSnapshots)
}

// settleSnapshotsAfterCrashes goes on after an error with a manager that has just started.
func (w *world) settleSnapshotsAfterCrashes() {
	GinkgoHelper()
	w.settleAfterCrashes(w.reconcileSnapshots)
}

// settleAfterCrashes runs rounds until one writes nothing. After an error it goes on with a manager that has just started.
func (w *world) settleAfterCrashes(round func() error) {
	GinkgoHelper()
	for range maxRounds {
		before := w.written
		if round() != nil {
			w.restart()
		} else if w.written == before {
			return
		}
	}
	Fail("the cluster did not come to rest")
}

// oldState is a cache that shows an earlier state of an object.
type oldState[T interface {
	client.Object
	DeepCopyInto(into T)
}] struct {
	client.Client
	of T
}

func (s oldState[T]) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	into, is := object.(T)
	if !is || key.Name != s.of.GetName() {
		return s.Client.Get(ctx, key, object, options...)
	}
	s.of.DeepCopyInto(into)
	return nil
}
