package audit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
)

// inspector asks a backend that can't list what is this cluster's about each volume of the cluster.
type inspector struct {
	client  client.Reader
	live    client.Reader
	drivers drivers.Drivers
	events  events.EventRecorder

	mu sync.Mutex
	// last is what the last audit of each backend found. After a restart, a volume is Lost one audit
	// later, and what is wrong with a volume is recorded once more.
	last map[types.NamespacedName]inspected
}

// inspected are the volumes that an audit didn't find, and what was wrong with others.
type inspected struct {
	missing  map[types.UID]bool
	abnormal map[types.UID]string
}

// inspect finds lost volumes, and reports on claims what is wrong with others. A volume is lost once two
// audits agree: the list of a driver may be late.
func (r *inspector) inspect(ctx context.Context, object *stowagev1alpha1.StorageBackend, with backend.Inspector) (findings, error) {
	volumes, err := volumesIn(ctx, r.client, object)
	if err != nil {
		return findings{}, err
	}
	handles := make([]string, 0, len(volumes))
	for i := range volumes {
		handles = append(handles, volumes[i].Spec.CSI.VolumeHandle)
	}
	bounded, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	said, err := with.Inspect(bounded, handles)
	if err != nil {
		return findings{}, fmt.Errorf("inspecting the volumes of StorageBackend %s: %w", object.Name, err)
	}
	now := inspected{abnormal: map[types.UID]string{}}
	if now.missing, err = r.missing(ctx, object, volumes, said.Missing); err != nil {
		return findings{}, err
	}
	before := r.exchange(object, now)
	r.reportHealth(ctx, volumes, said.Health, before.abnormal, now.abnormal)
	found := findings{unaudited: unaudited(object, said), unknown: !said.FindsMissing}
	for i := range volumes {
		pv := &volumes[i]
		if now.missing[pv.UID] && (before.missing[pv.UID] || wasLost(object, pv.Name)) {
			found.lost = append(found.lost, pv.Name)
		}
	}
	slices.Sort(found.lost)
	return found, nil
}

// missing returns the volumes that the driver made for a claim, that it doesn't have any more, and that
// are still there after its answer, by a live read.
func (r *inspector) missing(
	ctx context.Context, object *stowagev1alpha1.StorageBackend, volumes []corev1.PersistentVolume, missing map[string]bool,
) (map[types.UID]bool, error) {
	found := map[types.UID]bool{}
	for i := range volumes {
		made, err := r.drivers.MadeVolume(ctx, &volumes[i])
		if err != nil {
			return nil, err
		}
		if made && missing[volumes[i].Spec.CSI.VolumeHandle] {
			found[volumes[i].UID] = true
		}
	}
	if len(found) == 0 {
		return found, nil
	}
	live, err := volumesIn(ctx, r.live, object)
	if err != nil {
		return nil, err
	}
	confirmed := map[types.UID]bool{}
	for i := range live {
		if found[live[i].UID] && missing[live[i].Spec.CSI.VolumeHandle] {
			confirmed[live[i].UID] = true
		}
	}
	return confirmed, nil
}

// reportHealth records, on claims, what is wrong with their volumes, and that it is over: once for each
// change. Of a volume of which the driver says nothing now, the last word stays.
func (r *inspector) reportHealth(ctx context.Context, volumes []corev1.PersistentVolume, health map[string]string, before, now map[types.UID]string) {
	for i := range volumes {
		pv := &volumes[i]
		what, known := health[pv.Spec.CSI.VolumeHandle]
		had := before[pv.UID]
		if !known {
			what = had
		}
		if what != "" {
			now[pv.UID] = what
		}
		ref, claim := pv.Spec.ClaimRef, &corev1.PersistentVolumeClaim{}
		if what == had || ref == nil || r.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim) != nil || claim.UID != ref.UID {
			continue
		}
		if what == "" {
			r.events.Eventf(claim, nil, corev1.EventTypeNormal, event.VolumeConditionNormal, "Audit", "volume %s is well again, driver %s says", pv.Name, pv.Spec.CSI.Driver)
			continue
		}
		r.events.Eventf(claim, nil, corev1.EventTypeWarning, event.VolumeConditionAbnormal, "Audit", "volume %s isn't well, driver %s says: %s", pv.Name, pv.Spec.CSI.Driver, what)
	}
}

// exchange stores what an audit found, and returns what the one before it did.
func (r *inspector) exchange(object *stowagev1alpha1.StorageBackend, now inspected) inspected {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[types.NamespacedName]inspected{}
	}
	key := client.ObjectKeyFromObject(object)
	before := r.last[key]
	r.last[key] = now
	return before
}

func (r *inspector) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, name)
}

// volumesIn returns the volumes of a backend that aren't being deleted, sorted by name. They must not be changed.
func volumesIn(ctx context.Context, reader client.Reader, object *stowagev1alpha1.StorageBackend) ([]corev1.PersistentVolume, error) {
	all := &corev1.PersistentVolumeList{}
	if err := reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the volumes of StorageBackend %s: %w", object.Name, err)
	}
	var volumes []corev1.PersistentVolume
	for i := range all.Items {
		if slices.Contains(index.BackendOf(&all.Items[i]), object.Name) && all.Items[i].DeletionTimestamp.IsZero() {
			volumes = append(volumes, all.Items[i])
		}
	}
	return volumes, nil
}

func wasLost(object *stowagev1alpha1.StorageBackend, name string) bool {
	return object.Status.Audit != nil && slices.Contains(object.Status.Audit.LostVolumes, name)
}

// unaudited says what no audit of a CSI driver can find.
func unaudited(object *stowagev1alpha1.StorageBackend, said backend.Inspection) string {
	what := fmt.Sprintf("orphans: driver %s keeps no owner beside a volume, so they look like volumes of other clusters", backend.DriverOf(object))
	if !said.FindsMissing {
		what += "; lost volumes: it claims neither LIST_VOLUMES nor GET_VOLUME"
	}
	return what
}
