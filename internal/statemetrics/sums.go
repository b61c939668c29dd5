package statemetrics

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/volume"
)

// sums are what one scrape found.
type sums struct {
	// csi are the drivers with a StorageBackend of kind csi.
	csi      map[string]bool
	volumes  map[volumesOf]int
	backends map[string]*backendSums
}

type volumesOf struct {
	backend string
	phase   corev1.PersistentVolumePhase
}

// backendSums are those of one StorageBackend. first is when its first undelete window ends; zero:
// no volume is in one.
type backendSums struct {
	ready, retainedBytes float64
	retained             int
	first                time.Time
}

// sum counts volumes of the drivers that Stowage serves. A volume may name a backend that doesn't exist: people
// and restores make volumes, too. It is counted, but the name makes no metric of a backend.
func (c *Collector) sum(volumes []any, backends []stowagev1alpha1.StorageBackend) sums {
	found := sums{csi: map[string]bool{}, volumes: map[volumesOf]int{}, backends: map[string]*backendSums{}}
	for i := range backends {
		of := &backendSums{}
		if meta.IsStatusConditionTrue(backends[i].Status.Conditions, stowagev1alpha1.ReadyCondition) {
			of.ready = 1
		}
		found.backends[backends[i].Name] = of
		if csi := backends[i].Spec.CSI; csi != nil {
			found.csi[csi.Driver] = true
		}
	}
	for _, object := range volumes {
		c.add(&found, object.(*corev1.PersistentVolume))
	}
	return found
}

func (c *Collector) add(found *sums, pv *corev1.PersistentVolume) {
	names := index.BackendOf(pv)
	if len(names) == 0 || !backend.IsOurs(pv.Spec.CSI.Driver) && !found.csi[pv.Spec.CSI.Driver] {
		return
	}
	of, known := found.backends[names[0]]
	if !known {
		found.volumes[volumesOf{"", pv.Status.Phase}]++
		return
	}
	found.volumes[volumesOf{names[0], pv.Status.Phase}]++
	until, retained := volume.UndeletableUntil(pv)
	if !retained {
		return
	}
	of.retained++
	capacity := pv.Spec.Capacity[corev1.ResourceStorage]
	of.retainedBytes += capacity.AsApproximateFloat64()
	if of.first.IsZero() || until.Before(of.first) {
		of.first = until
	}
}
