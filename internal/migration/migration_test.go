package migration_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/stowage-dev/stowage/internal/migration"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestEachTypeThatKubernetesHandedOverHasItsDriver(t *testing.T) {
	for provisioner, want := range map[string]string{
		"kubernetes.io/aws-ebs":         "ebs.csi.aws.com",
		"kubernetes.io/azure-disk":      "disk.csi.azure.com",
		"kubernetes.io/azure-file":      "file.csi.azure.com",
		"kubernetes.io/cinder":          "cinder.csi.openstack.org",
		"kubernetes.io/gce-pd":          "pd.csi.storage.gke.io",
		"kubernetes.io/portworx-volume": "pxd.portworx.com",
		"kubernetes.io/vsphere-volume":  "csi.vsphere.vmware.com",
		"kubernetes.io/rbd":             "",
		"kubernetes.io/no-provisioner":  "",
		"disks.example.com":             "",
	} {
		if got := migration.DriverOf(provisioner); got != want {
			t.Errorf("%s became %q", provisioner, got)
		}
	}
}

func TestTheTypeOfAVolumeDecidesItsDriver(t *testing.T) {
	disk := Volume("disk")
	disk.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
	for want, pv := range map[string]*corev1.PersistentVolume{"pd.csi.storage.gke.io": disk, "": Volume("directory")} {
		if got := migration.DriverOfVolume(pv); got != want {
			t.Errorf("volume %s has driver %q", pv.Name, got)
		}
	}
}

func TestTheProvisionerDecidesWhetherAnObjectIsMarked(t *testing.T) {
	const provisioned, asked = volume.AnnDynamicallyProvisioned, volume.AnnStorageProvisioner
	const beta, migrated = volume.AnnBetaStorageProvisioner, volume.AnnMigratedTo
	const inTree, driver, gone = "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "kubernetes.io/rbd"

	for name, test := range map[string]struct{ volume, claim, wantVolume, wantClaim map[string]string }{
		"taken over": {
			volume: map[string]string{provisioned: inTree}, wantVolume: map[string]string{provisioned: inTree, migrated: driver},
			claim: map[string]string{asked: inTree}, wantClaim: map[string]string{asked: inTree, migrated: driver},
		},
		"asked by the older annotation": {
			nil, map[string]string{beta: inTree}, nil, map[string]string{beta: inTree, migrated: driver},
		},
		"asked by both": {
			nil, map[string]string{asked: driver, beta: inTree}, nil, map[string]string{asked: driver, beta: inTree},
		},
		"marked already": {
			map[string]string{provisioned: inTree, migrated: driver}, nil, map[string]string{provisioned: inTree, migrated: driver}, nil,
		},
		"gone": {
			volume: map[string]string{provisioned: gone, migrated: "old"}, wantVolume: map[string]string{provisioned: gone},
			claim: map[string]string{asked: gone, migrated: "old"}, wantClaim: map[string]string{asked: gone},
		},
		"of no provisioner": {
			volume: map[string]string{migrated: "by hand"}, wantVolume: map[string]string{migrated: "by hand"},
			claim: map[string]string{migrated: "by hand"}, wantClaim: map[string]string{migrated: "by hand"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pv, claim := Volume("v"), Claim()
			pv.Annotations, claim.Annotations = maps.Clone(test.volume), maps.Clone(test.claim)
			changed := migration.MarkVolume(pv)
			if !maps.Equal(pv.Annotations, test.wantVolume) || changed != !maps.Equal(test.volume, test.wantVolume) {
				t.Errorf("the volume has %v, changed: %v", pv.Annotations, changed)
			}
			changed = migration.MarkClaim(claim)
			if !maps.Equal(claim.Annotations, test.wantClaim) || changed != !maps.Equal(test.claim, test.wantClaim) {
				t.Errorf("the claim has %v, changed: %v", claim.Annotations, changed)
			}
		})
	}
}
