package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/starter"
	"github.com/stowage-dev/stowage/controllers/volumegroupsnapshotcontent"
	"github.com/stowage-dev/stowage/controllers/volumesnapshotcontent"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

var _ = Describe("The reconciler of VolumeSnapshotContents", func() {
	It("joins a manager that runs", func() {
		w, content := toBeSnapshotted()
		mgr := newManager(reconciler.ClassesScope)
		deps := w.dependencies(w.views.snapshots)
		deps.Client, deps.Live = mgr.GetClient(), mgr.GetAPIReader()
		starts := starter.New(deps.Live, snapshotAPI(), func() error { return volumesnapshotcontent.New(deps).SetupWithManager(mgr) })
		Expect(starts.SetupWithManager(mgr)).To(Succeed())

		runManager(mgr)

		Eventually(func(g Gomega) {
			w.get(content)
			g.Expect(content.Status).NotTo(BeNil())
			g.Expect(*content.Status.ReadyToUse).To(BeTrue())
			g.Expect(content.Annotations).NotTo(HaveKey(snapshots.BeingCreated))
		}).Should(Succeed())
	})
})

var _ = Describe("The reconciler of VolumeGroupSnapshotContents", func() {
	It("joins a manager that runs, and a StorageBackend that comes later wakes it", func() {
		w, content := toBeGrouped()
		w.delete(csiBackend())
		w.settle()
		mgr := newManager(reconciler.ClassesScope)
		deps := w.dependencies(w.views.groups)
		deps.Client, deps.Live = mgr.GetClient(), mgr.GetAPIReader()
		starts := starter.New(deps.Live, groupSnapshotAPI(false), func() error { return volumegroupsnapshotcontent.New(deps).SetupWithManager(mgr) })
		Expect(starts.SetupWithManager(mgr)).To(Succeed())
		runManager(mgr)
		w.create(csiBackend())

		Eventually(func(g Gomega) {
			w.get(content)
			g.Expect(content.Status).NotTo(BeNil())
			g.Expect(content.Status.ReadyToUse).To(HaveValue(BeTrue()))
			g.Expect(content.Annotations).NotTo(HaveKey(snapshots.GroupBeingCreated))
		}).Should(Succeed())
	})
})
