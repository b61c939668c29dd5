package gce

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/diskclass"
)

const (
	oneKey     = "projects/keys/locations/europe-west3/keyRings/disks/cryptoKeys/one"
	anotherKey = "projects/keys/locations/europe-west3/keyRings/disks/cryptoKeys/another"
)

func withKey(key string) func(*stowagev1alpha1.GCEBackend) {
	return func(spec *stowagev1alpha1.GCEBackend) { spec.EncryptionKey = key }
}

// ofClass is the request of a claim whose class has parameters.
func ofClass(uid string, parameters map[string]string) backend.Request {
	request := backendtest.Request(uid)
	request.Parameters, request.Capacity = parameters, resource.MustParse("100Gi")
	return request
}

// mustHaveKey checks the key of a disk.
func (w *world) mustHaveKey(id, key string) {
	w.Helper()
	if has := diskclass.KeyOf(w.mustHaveOne(id)); has != key {
		w.Errorf("disk %s has the key %q", id, has)
	}
}

func TestTheClassOfAClaimComesBeforeItsBackend(t *testing.T) {
	w := newWorld(t)
	on := w.open(withKey(oneKey), func(spec *stowagev1alpha1.GCEBackend) {
		spec.DiskType, spec.ProvisionedIOPS = "hyperdisk-balanced", new(int64(3000))
		spec.Labels = map[string]stowagev1alpha1.GCELabelValue{"team": "storage", "site": "north"}
	})
	w.mustProvision(on, ofClass("1", map[string]string{"provisioned-iops-on-create": "4000", "provisioned-throughput-on-create": "200Mi"}))
	w.mustProvision(on, ofClass("2", map[string]string{"labels": "team=shop", "disk-encryption-kms-key": anotherKey}))
	attributed := ofClass("3", map[string]string{"provisioned-iops-on-create": "4000"})
	attributed.Attributes = &backend.Attributes{Class: "quick", Parameters: map[string]string{"iops": "5000"}}
	w.mustProvision(on, attributed)

	if disk := w.mustHaveOne("pvc-1"); disk.ProvisionedIops != 4000 || disk.ProvisionedThroughput != 200 || disk.Labels["team"] != "storage" {
		t.Errorf("with performance in its class, it is %+v", disk)
	}
	if disk := w.mustHaveOne("pvc-2"); disk.ProvisionedIops != 3000 || disk.Labels["team"] != "shop" || disk.Labels["site"] != "north" || disk.Labels["stowage-claim-uid"] != "2" {
		t.Errorf("with labels in its class, it is %+v", disk)
	}
	if disk := w.mustHaveOne("pvc-3"); disk.ProvisionedIops != 5000 {
		t.Errorf("with a VolumeAttributesClass, it is %+v", disk)
	}
	w.mustHaveKey("pvc-1", oneKey)
	w.mustHaveKey("pvc-2", anotherKey)
}

func TestADiskHasTheTypeOfItsClass(t *testing.T) {
	w := newWorld(t)
	w.mustProvision(w.open(), ofClass("1", map[string]string{"type": "pd-ssd"}))
	if disk := w.mustHaveOne("pvc-1"); cloud.NameOf(disk.Type) != "pd-ssd" {
		t.Errorf("it is %+v", disk)
	}

	_, err := w.provision(w.open(), ofClass("2", map[string]string{"type": "pd-marble"}))
	w.mustBe(err, backend.Invalid, "has no disks of type pd-marble", "the type of the StorageClass")

	readers := ofClass("3", map[string]string{"type": "hyperdisk-balanced"})
	readers.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}
	_, err = w.provision(w.open(), readers)
	w.mustBe(err, backend.Invalid, "a disk of type hyperdisk-balanced can't be written first and be ReadOnlyMany later")
	if w.has("pvc-2") || w.has("pvc-3") {
		t.Error("a disk was made")
	}
}

func TestTheIOPSOfABackendAreForItsOwnType(t *testing.T) {
	w := newWorld(t)
	on := w.open(func(spec *stowagev1alpha1.GCEBackend) {
		spec.DiskType, spec.ProvisionedIOPS = "hyperdisk-balanced", new(int64(3000))
	})
	w.mustProvision(on, ofClass("1", map[string]string{"type": "pd-ssd"}))
	w.mustProvision(on, ofClass("2", map[string]string{"type": "hyperdisk-balanced"}))
	if disk := w.mustHaveOne("pvc-1"); disk.ProvisionedIops != 0 || cloud.NameOf(disk.Type) != "pd-ssd" {
		t.Errorf("it is %+v", disk)
	}
	if disk := w.mustHaveOne("pvc-2"); disk.ProvisionedIops != 3000 {
		t.Errorf("of the backend's type, it is %+v", disk)
	}
}

func TestAnUndoRepeatsACopyWhateverKeyIsDemandedNow(t *testing.T) {
	w := newWorld(t)
	withVolume(w, w.open(withKey(oneKey)))
	unwanted := copying("2")
	unwanted.Unwanted = true
	w.mustProvision(w.open(withKey(anotherKey)), unwanted)
	w.mustHaveKey("pvc-2", oneKey)
}

func TestACopyHasTheKeyOfItsSource(t *testing.T) {
	w := newWorld(t)
	withVolume(w, w.open(withKey(oneKey)))
	w.mustProvision(w.open(withKey(oneKey)), copying("2"))
	w.mustProvision(w.open(), copying("3"))
	w.mustHaveKey("pvc-2", oneKey)
	w.mustHaveKey("pvc-3", oneKey)

	_, err := w.provision(w.open(withKey(anotherKey)), copying("4"))
	w.mustBe(err, backend.Invalid, "has the encryption key "+oneKey, "but "+anotherKey+" is demanded", "restore a snapshot")
	if w.has("pvc-4") {
		t.Error("a disk was made")
	}
}

func TestACopyOfADiskWithoutAKeyOfTheCustomerIsNotMadeWhereOneIsDemanded(t *testing.T) {
	w := newWorld(t)
	withVolume(w, w.open())
	demanding := copying("2")
	demanding.Parameters = map[string]string{"disk-encryption-kms-key": oneKey}
	_, err := w.provision(w.open(), demanding)
	w.mustBe(err, backend.Invalid, "has the encryption key that Google chose")
	typed := copying("3")
	typed.Parameters = map[string]string{"type": "pd-ssd"}
	_, err = w.provision(w.open(), typed)
	w.mustBe(err, backend.Invalid, "has the type pd-balanced, and so has its copy")
	if w.has("pvc-2") || w.has("pvc-3") {
		t.Error("a disk was made")
	}
}

func TestARestoredDiskHasTheKeyThatIsDemandedNow(t *testing.T) {
	w := newWorld(t)
	withSnapshot(w, w.open(withKey(oneKey)))
	w.mustProvision(w.open(withKey(anotherKey)), w.restoring("2"))
	w.mustHaveKey("pvc-2", anotherKey)
}

func TestAKeyOfAnOlderObjectIsChecked(t *testing.T) {
	w := newWorld(t)
	w.spec.EncryptionKey = "projects/p/../k"
	object := &stowagev1alpha1.StorageBackend{Spec: stowagev1alpha1.StorageBackendSpec{GCE: &w.spec}}
	_, err := w.kind.Open(object)
	w.mustBe(err, backend.Invalid, "gce.encryptionKey is")
}
