// Package csinode writes to the node's CSINode which drivers serve the node: Stowage's own, and
// those that register on it. It writes their topology keys and limits, too, and that the agent
// follows pods. The Node gets the labels of their topology. Entries of other drivers stay as they
// are.
package csinode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const (
	// driversInterval is how often the CSINode is checked, and driversRetry how soon after an
	// error.
	driversInterval = time.Minute
	driversRetry    = 2 * time.Second
)

// Drivers writes to the node's CSINode which drivers serve it. It writes their topology keys, their
// limits for the scheduler, and that the agent follows pods. Where there is a kubelet, it does
// this. Entries of other drivers stay as they are.
//
// It is a runnable of the agent's controller manager. Its zero value isn't usable.
type Drivers struct {
	// NodeName is the drivers' node.
	NodeName string
	// Wanted are the drivers. WantedOn, if set, computes them from the Node.
	Wanted   []storagev1.CSINodeDriver
	WantedOn func(node *corev1.Node) []storagev1.CSINodeDriver
	// Client writes, and Live reads from the API server itself.
	Client client.Client
	Live   client.Reader

	// mu is held while an entry is written: each write depends on a read.
	mu sync.Mutex
	// registered are the entries of drivers that registered; nil for one that is to be removed.
	registered map[string]*storagev1.CSINodeDriver
}

// Start implements manager.Runnable.
func (d *Drivers) Start(ctx context.Context) error {
	for {
		next := driversInterval
		if err := d.Ensure(ctx); err != nil && ctx.Err() == nil {
			next = driversRetry
			logf.FromContext(ctx).Error(err, "writing the drivers of the node")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}

// Ensure brings the CSINode up to date. After an error, part of it may be written. Each driver that
// registered is written for itself: what the API server refuses of one holds up no other.
func (d *Drivers) Ensure(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.WantedOn != nil {
		of := &corev1.Node{}
		if err := d.Live.Get(ctx, client.ObjectKey{Name: d.NodeName}, of); err != nil {
			return fmt.Errorf("reading node %s: %w", d.NodeName, err)
		}
		d.Wanted = d.WantedOn(of)
	}
	failed := []error{d.write(ctx, d.Wanted, "")}
	for _, name := range slices.Sorted(maps.Keys(d.registered)) {
		failed = append(failed, d.writeRegistered(ctx, name))
	}
	return errors.Join(failed...)
}

// write writes the entries of drivers, and removes that of one driver.
func (d *Drivers) write(ctx context.Context, wanted []storagev1.CSINodeDriver, unwanted string) error {
	node := &storagev1.CSINode{}
	err := d.Live.Get(ctx, client.ObjectKey{Name: d.NodeName}, node)
	if apierrors.IsNotFound(err) {
		return d.create(ctx, wanted)
	}
	if err != nil {
		return fmt.Errorf("reading CSINode %s: %w", d.NodeName, err)
	}
	// The entry of a driver is immutable: it is removed, and added again.
	kept := slices.DeleteFunc(slices.Clone(node.Spec.Drivers), func(entry storagev1.CSINodeDriver) bool {
		return entry.Name == unwanted || isOutdated(wanted, entry)
	})
	if err := d.update(ctx, node, kept); err != nil {
		return err
	}
	if err := d.mark(ctx, node); err != nil {
		return err
	}
	drivers := slices.Clone(node.Spec.Drivers)
	for _, wanted := range wanted {
		if !slices.ContainsFunc(drivers, func(entry storagev1.CSINodeDriver) bool { return entry.Name == wanted.Name }) {
			drivers = append(drivers, wanted)
		}
	}
	return d.update(ctx, node, drivers)
}

// mark annotates that the agent follows pods: the controllers attach disks for it.
func (d *Drivers) mark(ctx context.Context, node *storagev1.CSINode) error {
	if node.Annotations[stowagev1alpha1.FollowsPodsAnnotation] == "true" {
		return nil
	}
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, stowagev1alpha1.FollowsPodsAnnotation, "true")
	if err := d.Client.Update(ctx, node); err != nil {
		return fmt.Errorf("marking CSINode %s: %w", d.NodeName, err)
	}
	return nil
}

// isOutdated reports whether a driver's entry differs from the wanted one.
func isOutdated(wanted []storagev1.CSINodeDriver, entry storagev1.CSINodeDriver) bool {
	return slices.ContainsFunc(wanted, func(wanted storagev1.CSINodeDriver) bool {
		return wanted.Name == entry.Name && !equality.Semantic.DeepEqual(wanted, entry)
	})
}

// create creates the CSINode, which is garbage-collected with its Node.
func (d *Drivers) create(ctx context.Context, drivers []storagev1.CSINodeDriver) error {
	owner := &corev1.Node{}
	if err := d.Live.Get(ctx, client.ObjectKey{Name: d.NodeName}, owner); err != nil {
		return fmt.Errorf("reading node %s: %w", d.NodeName, err)
	}
	err := d.Client.Create(ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{
			Name: d.NodeName, Annotations: map[string]string{stowagev1alpha1.FollowsPodsAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: owner.Name, UID: owner.UID}},
		},
		Spec: storagev1.CSINodeSpec{Drivers: drivers},
	})
	if err != nil {
		return fmt.Errorf("creating CSINode %s: %w", d.NodeName, err)
	}
	return nil
}

// update writes changed drivers. A concurrent write is a conflict.
func (d *Drivers) update(ctx context.Context, node *storagev1.CSINode, drivers []storagev1.CSINodeDriver) error {
	if equality.Semantic.DeepEqual(node.Spec.Drivers, drivers) {
		return nil
	}
	node.Spec.Drivers = drivers
	if err := d.Client.Update(ctx, node); err != nil {
		return fmt.Errorf("writing the drivers of CSINode %s: %w", d.NodeName, err)
	}
	return nil
}
