package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/leadership"
	"github.com/stowage-dev/stowage/internal/program"
)

const heldMetric = "bench_held_volumes"

// runProvisioner is the manager, with storage in memory that takes no time in place
// of local disks: what is measured is what the manager and the API server need. It serves
// metrics at an address.
func runProvisioner(ctx context.Context, kubeconfig string, arguments []string) error {
	storage := fake.New()
	held := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: heldMetric, Help: "Volumes that the storage holds."},
		func() float64 { return float64(storage.Len()) })
	if err := metrics.Registry.Register(held); err != nil {
		return fmt.Errorf("registering %s: %w", heldMetric, err)
	}
	mgr, lease, err := newManager(kubeconfig, arguments[0])
	if err != nil {
		return err
	}
	return manage(ctx, mgr, lease, fake.Kind{For: stowagev1alpha1.LocalType, Backend: storage})
}

// runAttacher is the manager, with disks in memory that are attached in no time in
// place of a cloud's.
func runAttacher(ctx context.Context, kubeconfig string, _ []string) error {
	mgr, lease, err := newManager(kubeconfig, "0")
	if err != nil {
		return err
	}
	disks := fake.New()
	if err := plugIn(ctx, mgr.GetAPIReader(), disks); err != nil {
		return fmt.Errorf("filling the storage: %w", err)
	}
	return manage(ctx, mgr, lease, fake.Kind{For: stowagev1alpha1.GCEType, Backend: disks})
}

// newManager makes a controller manager like the real one, which leads by a lease, and serves metrics at an
// address; "0" for none.
func newManager(kubeconfig, address string) (ctrl.Manager, *leadership.Lease, error) {
	config, err := unlimited(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.DisableCompression = true // as in the real one
	scheme, err := program.Scheme()
	if err != nil {
		return nil, nil, err
	}
	lease, err := leadership.New(config, metav1.NamespaceSystem, fmt.Sprintf("bench-%d", os.Getpid()))
	if err != nil {
		return nil, nil, err
	}
	pace := event.NewPace()
	pace.Apply(config)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Client: controllers.ClientOptions(), Metrics: metricsserver.Options{BindAddress: address},
		LeaderElection: true, LeaderElectionResourceLockInterface: lease,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making the manager: %w", err)
	}
	lease.RecordWith(mgr)
	return mgr, lease, mgr.Add(pace)
}

func manage(ctx context.Context, mgr ctrl.Manager, lease *leadership.Lease, storage fake.Kind) error {
	err := controllers.Setup(ctx, mgr, controllers.Options{
		Scope: reconciler.ClusterScope, Backends: backend.NewRegistry(storage), Metrics: metrics.Registry, Lease: lease,
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// plugIn has the storage hold, and have attached, what the API server says.
func plugIn(ctx context.Context, live client.Reader, disks *fake.Backend) error {
	volumes, attachments := &corev1.PersistentVolumeList{}, &storagev1.VolumeAttachmentList{}
	if err := errors.Join(live.List(ctx, volumes), live.List(ctx, attachments)); err != nil {
		return err
	}
	for i := range volumes.Items {
		pv := &volumes.Items[i]
		_, err := disks.Provision(ctx, backend.Request{
			ID: pv.Spec.CSI.VolumeHandle, Capacity: pv.Spec.Capacity[corev1.ResourceStorage], AccessModes: pv.Spec.AccessModes,
			Claim: stowagev1alpha1.ClaimReference{
				Namespace: pv.Spec.ClaimRef.Namespace, Name: pv.Spec.ClaimRef.Name, UID: pv.Spec.ClaimRef.UID,
			},
		})
		if err != nil {
			return err
		}
	}
	for i := range attachments.Items {
		spec := attachments.Items[i].Spec
		_, err := disks.Attach(ctx, backend.AttachRequest{
			ID: *spec.Source.PersistentVolumeName, Node: backend.NodeIdentity{Name: spec.NodeName},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
