package controllers

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/stowage-dev/stowage/controllers/volumesnapshotcontent"
)

var _ = Describe("The reconciler of VolumeSnapshotContents", func() {
	It("joins a manager that runs", func() {
		w, content := toBeSnapshotted()
		mgr, err := ctrl.NewManager(managerConfig, ctrl.Options{
			Scheme: apiServer.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: new(true)},
		})
		Expect(err).NotTo(HaveOccurred())
		deps := w.dependencies(w.views.snapshots)
		deps.Client, deps.Live = mgr.GetClient(), mgr.GetAPIReader()
		starter := volumesnapshotcontent.NewStarter(deps, func() error { return volumesnapshotcontent.New(deps).SetupWithManager(mgr) })
		Expect(starter.SetupWithManager(mgr)).To(Succeed())

		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- mgr.Start(ctx) }()
		DeferCleanup(func() {
			stop()
			Expect(<-ended).To(Succeed())
		})

		Eventually(func(g Gomega) {
			w.get(content)
			g.Expect(content.Status).NotTo(BeNil())
			g.Expect(*content.Status.ReadyToUse).To(BeTrue())
			g.Expect(content.Annotations).NotTo(HaveKey(volumesnapshotcontent.BeingCreated))
		}).Should(Succeed())
	})
})
