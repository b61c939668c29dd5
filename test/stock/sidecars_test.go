package stock_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A CSI driver with the real sidecars", Label("sidecars"), func() {
	It("is handed over to Stowage and back, and each change is made once", func(ctx SpecContext) {
		driver := startDriver(ctx)
		By("letting the sidecars serve it, beside Stowage without a StorageBackend")
		driver.startSidecars(ctx)
		used, doomed := driver.use(ctx, "used"), driver.use(ctx, "doomed")
		used.attach(ctx)
		used.grow(ctx, "2Gi")
		Expect(driver.different(0)).To(ConsistOf(
			"sidecars CreateVolume "+used.pv.Name, "sidecars CreateVolume "+doomed.pv.Name,
			"sidecars ControllerPublishVolume "+used.handle(), "sidecars ControllerExpandVolume "+used.handle()))

		By("handing it over to Stowage")
		driver.stopSidecars()
		before := driver.count()
		object := driver.handOver(ctx)
		driver.expectStill(ctx, before)
		made := driver.use(ctx, "made")
		used.grow(ctx, "3Gi")
		used.detach(ctx)
		doomed.remove(ctx)
		made.attach(ctx)
		Expect(driver.since(before)).To(ConsistOf(
			"stowage CreateVolume "+made.pv.Name, "stowage ControllerExpandVolume "+used.handle(), "stowage ControllerUnpublishVolume "+used.handle(),
			"stowage DeleteVolume "+doomed.handle(), "stowage ControllerPublishVolume "+made.handle()))
		expectAlike(used, made)

		By("handing it back to the sidecars")
		driver.handBack(ctx, object)
		before = driver.count()
		expectNoTraces(ctx, made)
		driver.startSidecars(ctx)
		driver.expectStill(ctx, before)
		made.grow(ctx, "3Gi")
		made.detach(ctx)
		made.remove(ctx)
		used.remove(ctx)
		Expect(driver.different(before)).To(ConsistOf(
			"sidecars ControllerExpandVolume "+made.handle(), "sidecars ControllerUnpublishVolume "+made.handle(),
			"sidecars DeleteVolume "+made.handle(), "sidecars DeleteVolume "+used.handle()))
		expectAlikeRequests("ControllerUnpublishVolume", made, used)
		expectAlikeRequests("DeleteVolume", made, doomed)
		expectAlikeRequests("ControllerExpandVolume", made, used)
		Expect(driver.volumes(ctx)).To(BeEmpty())
	})

	It("has claims copied by the sidecars and by Stowage, and the other lets their sources go", func(ctx SpecContext) {
		driver := startDriver(ctx)
		By("copying a claim with external-provisioner")
		driver.startSidecars(ctx)
		first := driver.use(ctx, "first")
		firstCopy := driver.copyOf(ctx, first)

		By("handing the driver over to Stowage, which copies another one")
		driver.stopSidecars()
		object := driver.handOver(ctx)
		second := driver.use(ctx, "second")
		secondCopy := driver.copyOf(ctx, second)
		expectAlikeRequests("CreateVolume", firstCopy, secondCopy, "CreateVolume volumeContentSource.volume.volumeId")

		By("deleting the first with its copy, and then the second under the sidecars")
		first.remove(ctx)
		firstCopy.remove(ctx)
		driver.handBack(ctx, object)
		driver.startSidecars(ctx)
		second.remove(ctx)
		secondCopy.remove(ctx)
		Expect(driver.volumes(ctx)).To(BeEmpty())
	})

	It("has one volume for a claim, whichever provisioner is killed before it records the volume", func(ctx SpecContext) {
		driver := startDriver(ctx)
		DeferCleanup(restartManager)
		By("killing external-provisioner")
		driver.startSidecars(ctx)
		first := driver.interrupt(ctx, "first", driver.stopSidecars)
		object := driver.handOver(ctx)
		driver.expectOne(ctx, first)

		By("killing the manager, which goes on later")
		second := driver.interrupt(ctx, "second", killManager)
		Expect(world.manager.StartReady(ctx)).To(Succeed())
		driver.expectOne(ctx, second)

		By("killing the manager, and letting external-provisioner go on")
		third := driver.interrupt(ctx, "third", killManager)
		driver.startSidecars(ctx)
		driver.expectOne(ctx, third)
		driver.stopSidecars()

		By("starting the manager again")
		Expect(world.manager.StartReady(ctx)).To(Succeed())
		for _, of := range []*user{first, second, third} {
			of.remove(ctx)
		}
		Expect(driver.volumes(ctx)).To(BeEmpty())
		driver.handBack(ctx, object)
	})

	It("goes on where the other was killed while it attached, detached or expanded a volume", func(ctx SpecContext) {
		driver := startDriver(ctx)
		DeferCleanup(restartManager)
		driver.startSidecars(ctx)
		grown, comes, goes := driver.use(ctx, "grown"), driver.use(ctx, "comes"), driver.use(ctx, "goes")
		goes.attach(ctx)
		By("killing the sidecars")
		driver.interruptCalls(ctx, "sidecars", grown, comes, goes, driver.stopSidecars)
		object := driver.handOver(ctx)
		grown.awaitSize(ctx, "2Gi")
		comes.awaitAttached(ctx)
		goes.awaitDetached(ctx)

		By("killing the manager")
		driver.interruptCalls(ctx, "stowage", grown, goes, comes, killManager)
		driver.startSidecars(ctx)
		grown.awaitSize(ctx, "3Gi")
		goes.awaitAttached(ctx)
		comes.awaitDetached(ctx)

		By("going on with Stowage")
		driver.stopSidecars()
		Expect(world.manager.StartReady(ctx)).To(Succeed())
		goes.detach(ctx)
		for _, of := range []*user{grown, comes, goes} {
			of.remove(ctx)
		}
		Expect(driver.volumes(ctx)).To(BeEmpty())
		driver.handBack(ctx, object)
	})
})
