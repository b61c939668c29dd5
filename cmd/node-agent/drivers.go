package main

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// drivers are what the node's CSINode says of Stowage's drivers where no kubelet does.
func (o *options) drivers(node *corev1.Node) []storagev1.CSINodeDriver {
	disks := storagev1.CSINodeDriver{Name: stowagev1alpha1.GCEDriver, NodeID: o.nodeName, TopologyKeys: []string{corev1.LabelTopologyZone}}
	limit := o.disksOn(node)
	disks.Allocatable = &storagev1.VolumeNodeResources{Count: &limit}
	return []storagev1.CSINodeDriver{
		disks,
		{Name: stowagev1alpha1.LocalDriver, NodeID: o.nodeName, TopologyKeys: []string{stowagev1alpha1.TopologyNodeLabel}},
		{Name: stowagev1alpha1.NFSDriver, NodeID: o.nodeName},
	}
}
