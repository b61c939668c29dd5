package integration_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/stowage-dev/stowage/controllers"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/leadership"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// manager is one of several that run at once.
type manager struct {
	// config is the client's. Nil: one with the rights of the scope.
	config *rest.Config
	scope  reconciler.Scope
	kinds  []backend.Kind
	// elected managers act only while they hold the lease.
	elected bool
	// namespace is where they publish what room nodes have.
	namespace string
	// bindsSnapshots is whether they bind VolumeSnapshots.
	bindsSnapshots bool
}

// inOwnNamespace has a cache hold what a manager publishes, as that program's does: it may read no more.
func inOwnNamespace() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&storagev1.CSIStorageCapacity{}: {Namespaces: map[string]cache.Config{apiserver.Namespace: {}}},
	}}
}

// start runs the manager until the spec ends or it is killed: then it drops
// whatever it is at, and keeps the lease.
func (m manager) start() (kill func()) {
	GinkgoHelper()
	if m.config == nil {
		m.config = asManager(m.scope)
	}
	skipNames := true
	var lease *leadership.Lease
	if m.elected {
		var err error
		lease, err = leadership.New(m.config, apiserver.Namespace, "manager.stowage.dev")
		Expect(err).NotTo(HaveOccurred())
	}
	mgr, err := ctrl.NewManager(m.config, ctrl.Options{
		Scheme:                              scheme,
		Client:                              controllers.ClientOptions(),
		Cache:                               inOwnNamespace(),
		Metrics:                             metricsserver.Options{BindAddress: "0"},
		Controller:                          ctrlconfig.Controller{SkipNameValidation: &skipNames},
		LeaderElection:                      m.elected,
		LeaderElectionResourceLockInterface: lease,
		LeaseDuration:                       new(15 * time.Second),
		RenewDeadline:                       new(12 * time.Second), // a manager that misses it ends: enough on a busy machine
		RetryPeriod:                         new(500 * time.Millisecond),
		GracefulShutdownTimeout:             new(time.Minute),
	})
	Expect(err).NotTo(HaveOccurred())
	lease.RecordWith(mgr)
	ctx, stop := context.WithCancel(context.Background())
	Expect(controllers.Setup(ctx, mgr, controllers.Options{
		Scope: m.scope, Backends: backend.NewRegistry(m.kinds...), Namespace: m.namespace, BindSnapshots: m.bindsSnapshots, Lease: lease,
	})).To(Succeed())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = mgr.Start(ctx)
	}()
	kill = func() {
		stop()
		<-stopped
	}
	DeferCleanup(kill)
	return kill
}

// eventuallyAtRest waits until all claims and volumes are in their right place.
func eventuallyAtRest(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) { atRest(ctx, g) }).WithContext(ctx).
		WithTimeout(clearing).WithPolling(200 * time.Millisecond).Should(Succeed())
}

// atRest expects that every claim is bound to one volume, and that to it alone, or
// waits while nothing that is free fits it.
func atRest(ctx context.Context, g Gomega) {
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	g.Expect(users.List(ctx, claims)).To(Succeed())
	g.Expect(users.List(ctx, volumes)).To(Succeed())
	byName := map[string]*corev1.PersistentVolume{}
	for i := range volumes.Items {
		byName[volumes.Items[i].Name] = &volumes.Items[i]
	}
	tied := map[string]bool{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Spec.VolumeName == "" {
			waitsInVain(g, claim, volumes.Items)
			continue
		}
		pv := byName[claim.Spec.VolumeName]
		g.Expect(pv).NotTo(BeNil(), "the volume of claim %s is gone", claim.Name)
		g.Expect(binder.TiedTo(pv, claim)).To(BeTrue(), "%s has volume %s, tied to %v", claim.Name, pv.Name, pv.Spec.ClaimRef)
		g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
		g.Expect(pv.Status.Phase).To(Equal(corev1.VolumeBound))
		g.Expect(pv.DeletionTimestamp).To(BeNil(), "volume %s is being deleted under claim %s", pv.Name, claim.Name)
		tied[pv.Name] = true
	}
	for name, pv := range byName {
		if !tied[name] {
			g.Expect(pv.Status.Phase).NotTo(Equal(corev1.VolumeBound), "no claim has volume %s", name)
		}
	}
}

func waitsInVain(g Gomega, claim *corev1.PersistentVolumeClaim, volumes []corev1.PersistentVolume) {
	g.Expect(claim.DeletionTimestamp).To(BeNil(), "claim %s is deleted and still there", claim.Name)
	g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimPending))
	for i := range volumes {
		g.Expect(binder.Fit(&volumes[i], binder.ClaimRequest{Claim: claim})).NotTo(Equal(binder.Fits),
			"claim %s waits, and volume %s fits it", claim.Name, volumes[i].Name)
	}
}
