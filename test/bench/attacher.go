package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
)

// runAttacher is the manager, with disks in memory that are attached in no time in
// place of a cloud's.
func runAttacher(ctx context.Context, kubeconfig string) error {
	mgr, err := newManager(kubeconfig, "0")
	if err != nil {
		return err
	}
	disks := fake.New()
	if err := plugIn(ctx, mgr.GetAPIReader(), disks); err != nil {
		return fmt.Errorf("filling the storage: %w", err)
	}
	err = controllers.Setup(ctx, mgr, controllers.Options{
		Scope: controllers.ClusterScope, Backends: backend.NewRegistry(fake.Kind{For: stowagev1alpha1.GCEType, Backend: disks}),
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
