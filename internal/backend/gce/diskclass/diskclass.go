// Package diskclass reads the parameters of StorageClasses for disks of Google Compute Engine, by the
// names of Google's own CSI driver. It calls no API: the Compute API alone knows which types of disks
// there are, and what they can have.
package diskclass

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"

	"google.golang.org/api/compute/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
	"github.com/stowage-dev/stowage/internal/backend/gce/performance"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/storagepool"
	"github.com/stowage-dev/stowage/internal/backend/gce/tags"
)

// Class is what a StorageClass says of its disks. What it leaves out is zero.
type Class struct {
	Type   string
	Labels map[string]string
	// Key is the key of Cloud KMS, without a version.
	Key string
	// Replicated disks are in two zones of a region.
	Replicated bool
	// InEachZone means that a volume has a disk in each zone, each made from the same snapshot.
	InEachZone bool
	// Pools are the storage pools that disks are made in, by zone. Nil: in none.
	Pools storagepool.Pools
	// Tags are those of Google's Resource Manager, values by PARENT/KEY.
	Tags map[string]string
	performance.Performance
}

// Of reads the parameters of a StorageClass. Its errors are of kind Invalid.
func Of(parameters map[string]string) (class Class, err error) {
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		value := parameters[name]
		switch stowagev1alpha1.GCEClassParameter(name) {
		case stowagev1alpha1.GCETypeParameter:
			class.Type, err = typeOf(value)
		case stowagev1alpha1.GCELabelsParameter:
			class.Labels, err = labels.Of("the parameter "+name+" of the StorageClass", value)
		case stowagev1alpha1.GCEKeyParameter:
			class.Key, err = value, CheckKey("the parameter "+name+" of the StorageClass", value)
		case stowagev1alpha1.GCEReplicationParameter:
			class.Replicated, err = replicationOf(name, value)
		case stowagev1alpha1.GCEIOPSParameter:
			class.IOPS, err = iopsOf(name, value)
		case stowagev1alpha1.GCEThroughputParameter:
			class.Throughput, err = throughputOf(name, value)
		case stowagev1alpha1.GCEEachZoneParameter:
			class.InEachZone, err = eachZoneOf(name, value)
		case stowagev1alpha1.GCEPoolsParameter:
			class.Pools, err = storagepool.Of(value)
		case stowagev1alpha1.GCETagsParameter:
			class.Tags, err = tags.Of(value)
		default:
			err = backend.Invalid.Errorf("the StorageClass has the parameter %.100q, which disks don't have: use a class without it", name)
		}
		if err != nil {
			return Class{}, err
		}
	}
	if class.InEachZone && class.Replicated {
		return Class{}, backend.Invalid.Errorf("the StorageClass asks for a disk in each zone, by %s, and for one with replicas, by %s: use a class with one of them",
			stowagev1alpha1.GCEEachZoneParameter, stowagev1alpha1.GCEReplicationParameter)
	}
	return class, nil
}

// Or adds what a backend says where the class says nothing, and the backend's labels beside the class's.
func (c Class) Or(others Class) Class {
	merged := maps.Clone(others.Labels)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, c.Labels)
	c.Type, c.Labels, c.Key = cmp.Or(c.Type, others.Type), merged, cmp.Or(c.Key, others.Key)
	c.Replicated, c.InEachZone = c.Replicated || others.Replicated && !c.InEachZone, c.InEachZone || others.InEachZone
	c.Performance = performance.Performance{IOPS: cmp.Or(c.IOPS, others.IOPS), Throughput: cmp.Or(c.Throughput, others.Throughput)}
	if c.Pools == nil {
		c.Pools = others.Pools
	}
	if c.Tags == nil {
		c.Tags = others.Tags
	}
	return c
}

// For is what a backend says of disks of a type: its performance is for its own type. Empty is that.
func (c Class) For(diskType string) Class {
	if diskType != "" && diskType != c.Type {
		c.Performance = performance.Performance{}
	}
	return c
}

// OfCopy is what a copy of a disk has: its type, its key and, if it has some, its replicas. It returns an error, too, where the StorageClass or the backend
// demands another key, or the class names another type.
func (c Class) OfCopy(source *compute.Disk, backendKey string) (Class, error) {
	diskType, key, named, demanded := path.Base(source.Type), KeyOf(source), c.Type, cmp.Or(c.Key, backendKey)
	c.Type, c.Key, c.Replicated = diskType, key, c.Replicated || place.Of(source).IsRegion()
	switch {
	case named != "" && named != diskType:
		return c, backend.Invalid.Errorf("disk %s, which is to be copied, has the type %.63s, and so has its copy: "+
			"use a class without the parameter %s, or restore a snapshot", source.Name, diskType, stowagev1alpha1.GCETypeParameter)
	case demanded != "" && demanded != key:
		return c, backend.Invalid.Errorf("disk %s, which is to be copied, has the encryption key %.300s, and so has its copy, but %s is demanded: "+
			"restore a snapshot instead", source.Name, cmp.Or(key, "that Google chose"), demanded)
	}
	return c, nil
}

func typeOf(value string) (string, error) {
	if !validType.MatchString(value) {
		return "", backend.Invalid.Errorf("the parameter %s of the StorageClass is %.100q: name a type such as pd-ssd", stowagev1alpha1.GCETypeParameter, value)
	}
	return value, nil
}

// Values of the parameter of replication.
const (
	inOneZone  = "none"
	inTwoZones = "regional-pd"
)

func replicationOf(name, value string) (replicated bool, err error) {
	if value != inOneZone && value != inTwoZones {
		err = backend.Invalid.Errorf("the parameter %s of the StorageClass is %.100q: write %s or %s", name, value, inTwoZones, inOneZone)
	}
	return value == inTwoZones, err
}

func eachZoneOf(name, value string) (inEachZone bool, err error) {
	if value != "true" && value != "false" {
		err = backend.Invalid.Errorf("the parameter %s of the StorageClass is %.100q: write true or false", name, value)
	}
	return value == "true", err
}

func iopsOf(name, value string) (int64, error) {
	iops, err := strconv.ParseInt(value, 10, 64)
	if err != nil || iops <= 0 {
		return 0, backend.Invalid.Errorf("the parameter %s of the StorageClass is %.100q: write a number of IOPS such as 5000", name, value)
	}
	return iops, nil
}

func throughputOf(name, value string) (int64, error) {
	throughput := performance.MiBIn(value)
	if throughput == 0 {
		return 0, backend.Invalid.Errorf("the parameter %s of the StorageClass is %.100q: write a number of bytes per second such as 250Mi", name, value)
	}
	return throughput, nil
}
