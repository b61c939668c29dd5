package csinode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// writeAttempts is how often a write is repeated that conflicts with another one.
	writeAttempts = 5
	// maxNodeID and maxTopology bound what a driver says of the node. The API server refuses a
	// longer id, and each key becomes a label.
	maxNodeID   = 256
	maxTopology = 32
)

// Info is what a driver says of its node.
type Info struct {
	// Driver is its name, and NodeID its name for the node.
	Driver, NodeID string
	// MaxVolumes is how many volumes the node takes; 0: as many as there are.
	MaxVolumes int64
	// Topology is where the node is. It becomes labels of the Node.
	Topology map[string]string
}

// Install writes what a driver says of the node, and keeps it written until Remove. A value that
// contradicts a label of the Node is refused, as by a kubelet.
func (d *Drivers) Install(ctx context.Context, info Info) error {
	if err := info.check(); err != nil {
		return fmt.Errorf("driver %s: %w", info.Driver, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := repeated(func() error { return d.label(ctx, info) }); err != nil {
		return err
	}
	d.keep(info.Driver, info.entry())
	err := repeated(func() error { return d.writeRegistered(ctx, info.Driver) })
	if err != nil {
		// It may be written in spite of the error: Ensure removes it.
		d.keep(info.Driver, nil)
	}
	return err
}

// Remove removes the entry of a driver that is no longer registered. After an error, Ensure
// removes it. The labels of the Node stay: volumes may have them in their nodeAffinity.
func (d *Drivers) Remove(ctx context.Context, driver string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keep(driver, nil)
	return repeated(func() error { return d.writeRegistered(ctx, driver) })
}

func (d *Drivers) keep(driver string, entry *storagev1.CSINodeDriver) {
	if d.registered == nil {
		d.registered = map[string]*storagev1.CSINodeDriver{}
	}
	d.registered[driver] = entry
}

// writeRegistered writes the entry of one driver, or removes it.
func (d *Drivers) writeRegistered(ctx context.Context, driver string) error {
	if entry := d.registered[driver]; entry != nil {
		return d.write(ctx, []storagev1.CSINodeDriver{*entry}, "")
	}
	err := d.write(ctx, nil, driver)
	if err == nil {
		delete(d.registered, driver)
	}
	return err
}

// label writes the labels of a driver's topology to the Node.
func (d *Drivers) label(ctx context.Context, info Info) error {
	if len(info.Topology) == 0 {
		return nil
	}
	node := &corev1.Node{}
	if err := d.Live.Get(ctx, client.ObjectKey{Name: d.NodeName}, node); err != nil {
		return fmt.Errorf("reading node %s: %w", d.NodeName, err)
	}
	labelled := node.DeepCopy()
	for _, key := range slices.Sorted(maps.Keys(info.Topology)) {
		value := info.Topology[key]
		if has, labels := node.Labels[key]; labels && has != value {
			return fmt.Errorf("driver %s says that node %s has %s=%s, and its label says %s: correct the driver, or remove the label",
				info.Driver, d.NodeName, key, value, has)
		}
		if labelled.Labels == nil {
			labelled.Labels = map[string]string{}
		}
		labelled.Labels[key] = value
	}
	if maps.Equal(node.Labels, labelled.Labels) {
		return nil
	}
	// With resourceVersion: another driver may have set the label since.
	if err := d.Client.Patch(ctx, labelled, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("labelling node %s with the topology of driver %s: %w", d.NodeName, info.Driver, err)
	}
	return nil
}

// check refuses what the API server would refuse together with the entries of other drivers.
func (i Info) check() error {
	switch {
	case i.NodeID == "":
		return errors.New("it names no id of the node")
	case len(i.NodeID) > maxNodeID:
		return fmt.Errorf("its id of the node has %d bytes, and at most %d are served", len(i.NodeID), maxNodeID)
	case i.MaxVolumes < 0:
		return fmt.Errorf("it says that the node takes %d volumes", i.MaxVolumes)
	case len(i.Topology) > maxTopology:
		return fmt.Errorf("its topology has %d keys, and at most %d are served", len(i.Topology), maxTopology)
	}
	for key, value := range i.Topology {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			return fmt.Errorf("%.200q=%.200q of its topology can't be a label", key, value)
		}
	}
	return nil
}

func (i Info) entry() *storagev1.CSINodeDriver {
	entry := &storagev1.CSINodeDriver{Name: i.Driver, NodeID: i.NodeID, TopologyKeys: slices.Sorted(maps.Keys(i.Topology))}
	if i.MaxVolumes > 0 {
		entry.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32(min(i.MaxVolumes, math.MaxInt32)))}
	}
	return entry
}

// repeated repeats a write while another writer of the same object is faster.
func repeated(write func() error) error {
	var err error
	for range writeAttempts {
		if err = write(); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}
