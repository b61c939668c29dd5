package controllers

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/controllers/starter"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A manager that runs when the CRDs of snapshots come", func() {
	// What is too small isn't tried again by time.
	DescribeTable("restores a claim as soon as an object changes",
		func(needs func(*world, *snapshotOfVolume, string)) {
			w, s := withSnapshot(reconciler.ClassesScope)
			needs(w, s, "2Gi")
			claim := restoreOf(s)
			w.create(claim)
			startSnapshots, events := managerOf(w)
			Eventually(events).Should(Receive(ContainSubstring("needs 2Gi")), "without a watch of snapshots")
			Expect(startSnapshots()).To(Succeed())

			needs(w, s, "1Gi")

			Eventually(func() bool { return w.gone(Volume(provisioned.VolumeID(claim))) }).Should(BeFalse())
		},
		Entry("its VolumeSnapshot", func(w *world, s *snapshotOfVolume, size string) {
			s.updateStatus(w, func(status *snapshotv1.VolumeSnapshotStatus) { status.RestoreSize = new(resource.MustParse(size)) })
		}),
		Entry("the content of that", func(w *world, s *snapshotOfVolume, size string) {
			bytes := resource.MustParse(size)
			s.updateContentStatus(w, func(status *snapshotv1.VolumeSnapshotContentStatus) { status.RestoreSize = new(bytes.Value()) })
		}),
	)
})

// managerOf is a manager that reconciles the claims of a world, its events, and what the starter of snapshots calls.
func managerOf(w *world) (start func() error, events chan string) {
	GinkgoHelper()
	mgr := newManager(reconciler.ClassesScope)
	Expect(index.Add(context.Background(), mgr.GetFieldIndexer())).To(Succeed())
	deps := w.dependencies(w.views.claims)
	deps.Client, deps.Live = mgr.GetClient(), mgr.GetAPIReader()
	claims := persistentvolumeclaim.New(deps)
	Expect(claims.SetupWithManager(mgr)).To(Succeed())
	ctx := runManager(mgr)
	started := starter.New(deps.Live, snapshotAPI(), claims.WatchSnapshots)
	return func() error { return started.Start(ctx) }, w.events.Events
}

// newManager is a manager of no reconciler yet.
func newManager(scope reconciler.Scope) ctrl.Manager {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(managerConfigs[scope], ctrl.Options{
		Scheme: apiServer.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	return mgr
}

// runManager runs a manager until the spec ends, and returns the context with which it runs.
func runManager(mgr ctrl.Manager) context.Context {
	GinkgoHelper()
	mirrored.bypass()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	return ctx
}
