package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// soon is below every period after which what waits looks again without a cause, of
// which the shortest, of a claim whose backend doesn't answer, is 30 seconds: what
// happens soon was woken. A busy machine may take most of it.
const soon = 20 * time.Second

var _ = Describe("With the whole manager running", Ordered, func() {
	var storage *fake.Backend

	BeforeEach(func() {
		storage = fake.New()
		startManager(fakeDisks(storage))
		DeferCleanup(removeEverything)
	})

	It("a claim that waits is bound when its volume appears", func(ctx SpecContext) {
		claim := Claim()
		create(ctx, claim)
		eventuallyWaits(ctx, claim, "NoMatchingVolume")

		create(ctx, Volume("late"))

		eventuallyBound(ctx, claim)
	})

	It("a claim that waits is bound when the claim that had its volume lets a person free it", func(ctx SpecContext) {
		first, second := Claim(ClaimNamed("first")), Claim(ClaimNamed("second"))
		create(ctx, Volume("v"), first)
		eventuallyBound(ctx, first)
		create(ctx, second)
		eventuallyWaits(ctx, second, "NoMatchingVolume")

		Expect(users.Delete(ctx, first)).To(Succeed())
		pv := Volume("v")
		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(pv), pv)).To(Succeed())
			g.Expect(pv.Status.Phase).To(Equal(corev1.VolumeReleased))
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
		pv.Spec.ClaimRef = nil
		Expect(users.Update(ctx, pv)).To(Succeed())

		eventuallyBound(ctx, second)
	})

	It("a bound claim takes its volume back when another client unties it, before another claim can", func(ctx SpecContext) {
		claim, pv, stranger := Claim(), Volume("v"), Claim(ClaimNamed("stranger"))
		create(ctx, pv, claim)
		eventuallyBound(ctx, claim)
		create(ctx, stranger)
		eventuallyWaits(ctx, stranger, "NoMatchingVolume")

		Expect(users.Get(ctx, client.ObjectKeyFromObject(pv), pv)).To(Succeed())
		pv.Spec.ClaimRef = nil
		Expect(users.Update(ctx, pv)).To(Succeed())

		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(pv), pv)).To(Succeed())
			g.Expect(pv.Spec.ClaimRef).NotTo(BeNil())
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
		Expect(pv.Spec.ClaimRef.Name).To(Equal(claim.Name))
		eventuallyWaits(ctx, stranger, "NoMatchingVolume")
	})

	It("a lost claim is bound again when its volume object is created again", func(ctx SpecContext) {
		claim, pv := Claim(), Volume("v")
		create(ctx, pv, claim)
		eventuallyBound(ctx, claim)
		Expect(users.Delete(ctx, pv)).To(Succeed())
		Expect(users.Patch(ctx, pv, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		eventuallyWaits(ctx, claim, "VolumeLost")

		create(ctx, Volume("v"))

		eventuallyBound(ctx, claim)
	})

	It("a claim that names a volume is bound to it when it appears, whatever it selects", func(ctx SpecContext) {
		claim := Claim(AskingFor("late"), Selecting("disk", "ssd"))
		create(ctx, claim)
		eventuallyWaits(ctx, claim, "VolumeNotFound")

		create(ctx, Volume("late"))

		eventuallyBound(ctx, claim)
	})

	It("a claim that names a volume gets an event when that appears and is too small", func(ctx SpecContext) {
		claim := Claim(AskingFor("late"), Asking("10Gi"))
		create(ctx, claim)
		eventuallyWaits(ctx, claim, "VolumeNotFound")

		create(ctx, Volume("late"))

		eventuallyWaits(ctx, claim, "VolumeMismatch")
	})

	It("a claim that waits is provisioned when its class and backend appear", func(ctx SpecContext) {
		claim := Claim(InClass("disks"))
		create(ctx, claim)
		eventuallyWaits(ctx, claim, "NoMatchingVolume")

		create(ctx, LocalBackend("disks"))

		eventuallyBound(ctx, claim)
		Expect(storage.Len()).To(Equal(1))
	})

	It("a claim without a class is provisioned when a default class appears", func(ctx SpecContext) {
		unset := func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = nil }
		claim, without := Claim(unset), Claim(ClaimNamed("without"))
		create(ctx, claim, without)
		eventuallyWaits(ctx, claim, "NoMatchingVolume")

		create(ctx, LocalBackend("disks", func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.StorageClass.IsDefault = true
		}))

		eventuallyBound(ctx, claim)
		eventuallyWaits(ctx, without, "NoMatchingVolume")
	})

	It("a backend that hangs holds up no other, and is waited for no longer than it takes", func(ctx SpecContext) {
		const many = 50
		release := storage.Hold()
		create(ctx, LocalBackend("disks"))
		for i := range many {
			create(ctx, Claim(ClaimNamed(name("slow", i)), InClass("disks")))
		}
		eventuallyWaits(ctx, Claim(ClaimNamed(name("slow", many-1)), InClass("disks")), "Provisioning")
		other := Claim(ClaimNamed("other"))
		create(ctx, Volume("v"), other)
		eventuallyBound(ctx, other)

		release()

		for i := range many {
			eventuallyBound(ctx, Claim(ClaimNamed(name("slow", i))))
		}
		Expect(storage.Len()).To(Equal(many))
	})

	It("a claim whose class names an unknown backend is provisioned when that appears", func(ctx SpecContext) {
		claim := Claim(InClass("by-hand"))
		create(ctx, Class("by-hand", stowagev1alpha1.LocalDriver, map[string]string{"backend": "later"}), claim)
		eventuallyWaits(ctx, claim, "ProvisioningFailed")

		create(ctx, LocalBackend("later"))

		eventuallyBound(ctx, claim)
	})

	It("a claim that waits for a consumer is provisioned when a pod is placed by hand, and then its node appears", func(ctx SpecContext) {
		claim := Claim(InClass("disks"))
		create(ctx, LocalBackend("disks", func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.StorageClass.VolumeBindingMode = storagev1.VolumeBindingWaitForFirstConsumer
		}))
		create(ctx, claim)
		eventuallyWaits(ctx, claim, "WaitForFirstConsumer")

		create(ctx, Pod("user", "node-1", "data"))
		eventuallyWaits(ctx, claim, "NodeNotFound")
		create(ctx, Node("node-1"))

		eventuallyBound(ctx, claim)
	})

	It("a deleted claim goes when its pod does, and its volume and data with it", func(ctx SpecContext) {
		claim, pod := Claim(InClass("disks")), Pod("user", "node-1", "data")
		create(ctx, LocalBackend("disks"), pod, claim)
		eventuallyBound(ctx, claim)
		Expect(users.Delete(ctx, claim)).To(Succeed())

		Expect(users.Delete(ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())

		eventuallyEmpty(ctx, &corev1.PersistentVolumeClaimList{})
		eventuallyEmpty(ctx, &corev1.PersistentVolumeList{})
		Expect(storage.Len()).To(BeZero())
	})

	It("claims of all sizes that wait each get the volume of their size, in whatever order those come, in four writes each", func(ctx SpecContext) {
		const pairs = 50
		for i := range pairs {
			create(ctx, Claim(ClaimNamed(name("claim", i)), Asking(mebibytes(i))))
		}
		for i := range pairs {
			eventuallyWaits(ctx, Claim(ClaimNamed(name("claim", i))), "NoMatchingVolume")
		}
		writes.reset()
		begun := time.Now()
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(pairs) {
			create(ctx, Volume(name("volume", i), Holding(mebibytes(i))))
		}
		for i := range pairs {
			claim := Claim(ClaimNamed(name("claim", i)))
			eventuallyBound(ctx, claim)
			Expect(claim.Spec.VolumeName).To(Equal(name("volume", i)))
		}
		// Where it takes long, those that still wait report what has come by then: after more
		// than three seconds, of so many, and then once in a second at most.
		Expect(writes.repeated()).To(BeNumerically("<=", pairs*int(max(0, time.Since(begun)-2*time.Second)/time.Second)), writes.suspects)
		Consistently(writes.others).WithTimeout(time.Second).Should(Equal(4*pairs), writes.suspects)
	})

	It("a claim that waits reports a volume that came and is too small", func(ctx SpecContext) {
		claim := Claim(Asking("5Gi"))
		create(ctx, claim)
		eventuallyWaits(ctx, claim, "NoMatchingVolume")

		create(ctx, Volume("small"))

		Eventually(func(g Gomega) {
			g.Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
			g.Expect(claim.Status.Conditions).To(ContainElement(HaveField("Message", HavePrefix("1 volume without a class: 1 too small (largest 1Gi: small, need 5Gi)"))))
		}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
	})

	It("a hundred claims and a hundred volumes become a hundred pairs, in four writes each", func(ctx SpecContext) {
		const pairs = 100
		for i := range pairs {
			create(ctx, Volume(name("volume", i)))
		}
		for i := range pairs {
			eventuallyAvailable(ctx, Volume(name("volume", i)))
		}
		writes.reset()
		for i := range pairs {
			create(ctx, Claim(ClaimNamed(name("claim", i))))
		}
		taken := map[string]bool{}
		for i := range pairs {
			claim := Claim(ClaimNamed(name("claim", i)))
			eventuallyBound(ctx, claim)
			taken[claim.Spec.VolumeName] = true
		}
		Expect(taken).To(HaveLen(pairs))
		Consistently(writes.total).WithTimeout(time.Second).Should(Equal(4*pairs), writes.suspects)
	})
})

func mebibytes(i int) string { return fmt.Sprintf("%dMi", i+1) }

// fakeDisks has a fake serve the backends of type local.
func fakeDisks(storage *fake.Backend) backend.Kind {
	return fake.Kind{For: stowagev1alpha1.LocalType, Backend: storage}
}

// startManager runs a manager in scope=cluster until the spec ends.
func startManager(kinds ...backend.Kind) {
	GinkgoHelper()
	skipNames := true
	mgr, err := ctrl.NewManager(writes.count(asManager(reconciler.ClusterScope)), ctrl.Options{
		Scheme:     scheme,
		Client:     controllers.ClientOptions(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: &skipNames},
	})
	Expect(err).NotTo(HaveOccurred())
	options := controllers.Options{Scope: reconciler.ClusterScope, Backends: backend.NewRegistry(kinds...)}
	for _, kind := range kinds {
		if recycler, can := kind.(backend.Recycler); can {
			options.Recycler = recycler
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	Expect(controllers.Setup(ctx, mgr, options)).To(Succeed())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		stop()
		Expect(<-stopped).To(Succeed())
	})
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(users.Create(ctx, object)).To(Succeed())
	}
}

func eventuallyBound(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound), "%+v", claim.Status.Conditions)
	}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
}

func eventuallyAvailable(ctx context.Context, pv *corev1.PersistentVolume) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, client.ObjectKeyFromObject(pv), pv)).To(Succeed())
		g.Expect(pv.Status.Phase).To(Equal(corev1.VolumeAvailable))
	}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
}

func eventuallyWaits(ctx context.Context, claim *corev1.PersistentVolumeClaim, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		g.Expect(claim.Status.Conditions).To(ContainElement(HaveField("Reason", reason)))
	}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
}

func eventuallyEmpty(ctx context.Context, list client.ObjectList) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(users.List(ctx, list)).To(Succeed())
		g.Expect(meta.LenList(list)).To(BeZero())
	}).WithContext(ctx).WithTimeout(soon).Should(Succeed())
}
