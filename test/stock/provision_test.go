package stock_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A claim of a class of Stowage's", func() {
	for _, class := range []string{disks + "-now", share, cloud + "-now"} {
		It("gets a volume at once, of class "+class, func(ctx SpecContext) {
			claim := Claim(ClaimNamed("now-"+class), InClass(class), Asking("16Mi"))
			if class == cloud+"-now" {
				Asking("1Gi")(claim)
			}
			create(ctx, claim)
			tidy(claim)

			pv := eventuallyBound(ctx, claim)

			Expect(pv.Annotations).To(HaveKeyWithValue(volume.AnnDynamicallyProvisioned, pv.Spec.CSI.Driver))
			Expect(claim.Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
		})
	}

	for _, class := range []string{disks, share + "-later", cloud} {
		It("gets a volume where its pod is placed, of class "+class, func(ctx SpecContext) {
			claim := Claim(ClaimNamed("later-"+class), InClass(class), Asking("16Mi"))
			if class == cloud {
				Asking("1Gi")(claim)
			}
			create(ctx, claim)
			Consistently(func(g Gomega) {
				g.Expect(users.Get(ctx, keyOf(claim), claim)).To(Succeed())
				g.Expect(claim.Annotations).NotTo(HaveKey(volume.AnnStorageProvisioner))
			}).WithTimeout(still).Should(Succeed())
			pod := on(Pod("later-"+class, "", claim.Name), "other")
			create(ctx, pod)
			tidy(pod, claim)

			Expect(eventuallyPlaced(ctx, pod)).To(Equal("other"))
			pv := eventuallyBound(ctx, claim)

			Expect(claim.Annotations).To(HaveKeyWithValue(volume.AnnSelectedNode, "other"))
			Expect(pv.Spec.CSI.Driver).To(HaveSuffix(".stowage.dev"))
			Expect(isUsableOn(pv, "other")).To(BeTrue(), "%+v", pv.Spec.NodeAffinity)
			Expect(isUsableOn(pv, "small")).To(Equal(class == share+"-later"), "%+v", pv.Spec.NodeAffinity)
		})
	}

	It("is not placed where the disk has no room, as CSIStorageCapacity says", func(ctx SpecContext) {
		claim := Claim(ClaimNamed("large"), InClass(disks), Asking("200Mi"))
		pod := Pod("large", "", claim.Name)
		create(ctx, claim, pod)
		tidy(pod, claim)

		Expect(eventuallyPlaced(ctx, pod)).To(Equal("large"))
		Expect(isUsableOn(eventuallyBound(ctx, claim), "large")).To(BeTrue())
	})

	It("waits, and its pod with it, while no node has room, and is provided for once one has", func(ctx SpecContext) {
		first, second := Claim(ClaimNamed("first"), InClass(disks), Asking("300Mi")), Claim(ClaimNamed("second"), InClass(disks), Asking("300Mi"))
		one, two := Pod("first", "", "first"), Pod("second", "", "second")
		create(ctx, first, one)
		tidy(one, first)
		eventuallyPlaced(ctx, one)
		eventuallyBound(ctx, first)
		create(ctx, second, two)
		tidy(two, second)
		Eventually(func(g Gomega) {
			g.Expect(reasons(ctx, two)).To(ContainElement("FailedScheduling"))
		}).Should(Succeed())

		remove(ctx, one, first)

		Expect(eventuallyPlaced(ctx, two)).To(Equal("large"))
		eventuallyBound(ctx, second)
	})

	It("is placed again where the zone that was chosen has no room", func(ctx SpecContext) {
		DeferCleanup(world.well)
		world.fault(ctx, `{"method":"disks.insert","count":1,"operation":"ZONE_RESOURCE_POOL_EXHAUSTED"}`)
		claim, pod := Claim(ClaimNamed("exhausted"), InClass(cloud)), Pod("exhausted", "", "exhausted")
		create(ctx, claim, pod)
		tidy(pod, claim)

		node := eventuallyPlaced(ctx, pod)
		pv := eventuallyBound(ctx, claim)

		Expect(isUsableOn(pv, node)).To(BeTrue())
		Expect(reasons(ctx, claim)).To(ContainElement("ProvisioningFailed"))
		Expect(claim.Finalizers).NotTo(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
		Expect(world.disks(ctx)).To(ContainElement(pv.Name))
	})

	It("is placed in the zones that the cloud's disks are made in, also once these are others", func(ctx SpecContext) {
		object := world.inZones("near", zoneB)
		create(ctx, object)
		tidy(object)
		within := map[string][]string{zoneA: {"small", "large"}, zoneB: {"other"}}
		for _, zone := range []string{zoneB, zoneA} {
			setZones(ctx, object, zone)
			claim, pod := Claim(ClaimNamed("near"), InClass("near"), Asking("1Gi")), Pod("near", "", "near")
			create(ctx, claim, pod)

			Expect(eventuallyPlaced(ctx, pod)).To(BeElementOf(within[zone]))
			pv := eventuallyBound(ctx, claim)

			Expect(messages(ctx, claim)).NotTo(ContainElement(ContainSubstring("is asked for another node")))
			remove(ctx, pod, claim)
			for _, object := range []client.Object{pod, claim, pv} {
				eventuallyGone(ctx, object)
			}
		}
	})

	It("goes back to the scheduler, with an event that says why, where a class says nothing of the cloud's zones", func(ctx SpecContext) {
		object := world.inZones("near", zoneB)
		create(ctx, object)
		tidy(object)
		class := classOf(ctx, "near", "anywhere")
		class.AllowedTopologies = nil
		create(ctx, class)
		claim, pod := Claim(ClaimNamed("anywhere"), InClass(class.Name), Asking("1Gi")), on(Pod("anywhere", "", "anywhere"), "small")
		create(ctx, claim, pod)
		tidy(pod, claim, class)

		Eventually(messages).WithArguments(ctx, claim).Should(ContainElement(And(
			ContainSubstring("node small is in zone europe-west3-a, and backend near makes disks in europe-west3-b only"),
			ContainSubstring("allowedTopologies"), ContainSubstring("the scheduler is asked for another node"))))
		setZones(ctx, object, zoneA, zoneB)

		Expect(eventuallyPlaced(ctx, pod)).To(Equal("small"))
		Expect(isUsableOn(eventuallyBound(ctx, claim), "small")).To(BeTrue())
	})

	It("goes, with what was made for it, when it is deleted on the way", func(ctx SpecContext) {
		world.slow(ctx, "3s")
		DeferCleanup(func(ctx SpecContext) { world.slow(ctx, "100ms") })
		claim := Claim(ClaimNamed("deleted"), InClass(cloud+"-now"))
		create(ctx, claim)
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, keyOf(claim), claim)).To(Succeed())
			g.Expect(claim.Finalizers).To(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
		}).Should(Succeed())

		remove(ctx, claim)

		eventuallyGone(ctx, claim)
		eventuallyGone(ctx, &corev1.PersistentVolume{ObjectMeta: Volume("pvc-" + string(claim.UID)).ObjectMeta})
		Expect(world.disks(ctx)).NotTo(ContainElement("pvc-" + string(claim.UID)))
	})

	It("is provided for though the manager dies in the middle of it", func(ctx SpecContext) {
		world.slow(ctx, "2s")
		DeferCleanup(func(ctx SpecContext) { world.slow(ctx, "100ms") })
		claim := Claim(ClaimNamed("interrupted"), InClass(cloud+"-now"))
		create(ctx, claim)
		tidy(claim)
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, keyOf(claim), claim)).To(Succeed())
			g.Expect(claim.Finalizers).To(ContainElement(stowagev1alpha1.ProvisioningFinalizer))
		}).Should(Succeed())

		Expect(world.manager.Kill()).To(Succeed())
		Expect(world.manager.Start()).To(Succeed())

		eventuallyBound(ctx, claim)
		Expect(world.disks(ctx)).To(ContainElement("pvc-" + string(claim.UID)))
	})
})

// inZones is a StorageBackend of the cloud that makes disks in some zones only.
func (s *stowage) inZones(name string, zones ...string) *stowagev1alpha1.StorageBackend {
	return LocalBackend(name, func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local, object.Spec.StorageClass = nil, &stowagev1alpha1.StorageClassTemplate{}
		object.Spec.GCE = &stowagev1alpha1.GCEBackend{Project: project, Zones: zones, Endpoint: s.cloud + "/compute/v1/"}
	})
}

// setZones has a cloud make disks in other zones, and waits for its class to allow them.
func setZones(ctx context.Context, object *stowagev1alpha1.StorageBackend, zones ...string) {
	GinkgoHelper()
	Eventually(func() error {
		if err := users.Get(ctx, keyOf(object), object); err != nil {
			return err
		}
		object.Spec.GCE.Zones = zones
		return users.Update(ctx, object)
	}).Should(Succeed())
	Eventually(func() []corev1.TopologySelectorTerm { return classOf(ctx, object.Name, "").AllowedTopologies }).
		Should(HaveExactElements(HaveField("MatchLabelExpressions", HaveExactElements(HaveField("Values", zones)))))
}

// classOf is a class as the one that a backend keeps, under a name of its own.
func classOf(ctx context.Context, kept, name string) *storagev1.StorageClass {
	GinkgoHelper()
	class := &storagev1.StorageClass{}
	Eventually(func() error { return users.Get(ctx, client.ObjectKey{Name: kept}, class) }).Should(Succeed())
	class.ObjectMeta = metav1.ObjectMeta{Name: name}
	return class
}
