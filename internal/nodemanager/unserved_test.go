package nodemanager

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// served are the types of volumes that pods name themselves, and that are served, or
// turn out to be another one.
var served = []string{"hostPath", "emptyDir", "secret", "nfs", "persistentVolumeClaim", "downwardAPI", "configMap", "projected", "ephemeral", "csi"}

//proves:refused/reported
func TestTheErrorOfAnUnsupportedTypeHasItsAlternative(t *testing.T) {
	source := reflect.TypeFor[corev1.VolumeSource]()
	tested := 0
	for i := range source.NumField() {
		volume := corev1.Volume{Name: "data"}
		field := reflect.ValueOf(&volume.VolumeSource).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		if volume.CSI != nil {
			volume.CSI.Driver = "driver.example.com"
		}
		name := resolve.SetField(volume.VolumeSource)
		says := "volume of type " + name
		err := resolve.ErrUnserved(volumes.Spec{Volume: volume})
		isAdvice := strings.Contains(err.Error(), "not supported by this version of Stowage: ")
		isServed := slices.Contains(served, name)
		if !errors.Is(err, volumes.ErrNotSupported) || !strings.HasPrefix(err.Error(), says) || isAdvice == isServed {
			t.Errorf("%s: %v", name, err)
		}
		tested++
	}
	if tested < 30 {
		t.Errorf("the API has %d types", tested)
	}
}

//proves:refused/reported csi/refused
func TestTheAlternativeDependsOnTheDriverAndTheMode(t *testing.T) {
	inline := func(driver string) volumes.Spec {
		return volumes.Spec{Volume: corev1.Volume{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: driver}}}}
	}
	object := func(source corev1.PersistentVolumeSource, mode corev1.PersistentVolumeMode) volumes.Spec {
		return volumes.Spec{PersistentVolume: &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source, VolumeMode: &mode}}}
	}
	disk := corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
	share := corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}
	tests := map[string]struct {
		spec volumes.Spec
		says []string
	}{
		"a directory of a node, without a claim": {inline("local.stowage.dev"), []string{"type csi with driver local.stowage.dev is", "ephemeral.volumeClaimTemplate"}},
		"a disk of ours, without a claim":        {inline("gce.stowage.dev"), []string{"type csi with driver gce.stowage.dev is", "ephemeral.volumeClaimTemplate"}},
		"a disk that another's driver attaches": {
			object(disk, corev1.PersistentVolumeFilesystem), []string{"type gcePersistentDisk is", "pd.csi.storage.gke.io", "set gce.existingDisks on the StorageBackend"},
		},
		"such a disk, named by a pod": {
			volumes.Spec{Volume: corev1.Volume{VolumeSource: corev1.VolumeSource{GCEPersistentDisk: disk.GCEPersistentDisk}}},
			[]string{"type gcePersistentDisk is", "make a PersistentVolume of the disk"},
		},
		"a directory as a device": {object(share, corev1.PersistentVolumeBlock), []string{"type nfs and volumeMode Block is", "use volumeMode Filesystem"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, says := range test.says {
				if got := resolve.ErrUnserved(test.spec).Error(); !strings.Contains(got, says) {
					t.Errorf("%q doesn't say %q", got, says)
				}
			}
		})
	}
}

func TestAnUnsupportedTypeIsReportedOnceAndNotRetriedUnlessItsClaimMayBeBoundAnew(t *testing.T) {
	disk := corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}}
	memory := corev1.Volume{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Tape"}}}
	for name, volume := range map[string]corev1.Volume{"by its type": disk, "when it is mounted": memory} {
		t.Run(name, func(t *testing.T) {
			waiting := nodetest.ClaimVolume("data", false)
			api := clientWith(interceptor.Funcs{}, nodetest.PodWith(volume, waiting))
			bench := newBench(t, api, api)
			recorded := bench.Events.(*events.FakeRecorder).Events
			if err := bench.settle(t); err != nil {
				t.Fatal(err)
			}

			// The state of the pending volume changes.
			claim, _ := nodetest.Bound()
			claim.Status.Phase = corev1.ClaimPending
			if err := api.Create(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			if err := bench.settle(t); err != nil {
				t.Fatal(err)
			}

			if len(recorded) != 1 {
				t.Errorf("recorded %d times", len(recorded))
			}
			if event := <-recorded; !strings.Contains(event, "Warning FailedMount volume "+volume.Name) || strings.Contains(event, "waiting") {
				t.Errorf("recorded %q", event)
			}
		})
	}
}

func TestWhenAnUnsupportedTypeIsRetried(t *testing.T) {
	own := DesiredVolume{Volume: corev1.Volume{VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}}}
	ofClaim := DesiredVolume{Volume: nodetest.ClaimVolume("data", false)}
	if again := own.retryAfter(volumes.ErrNotSupported, podstatus.FirstClaimWait); again != 0 {
		t.Errorf("a pod's own: after %s", again)
	}
	if again := ofClaim.retryAfter(volumes.ErrNotSupported, podstatus.FirstClaimWait); again != operations.LastRetry {
		t.Errorf("a claim's: after %s", again)
	}
	if again := ofClaim.retryAfter(resolve.MayBeAllowed{Err: volumes.ErrNotSupported}, podstatus.FirstClaimWait); again != podstatus.LastClaimWait {
		t.Errorf("what may be allowed is tried again after %s", again)
	}
	if again := own.retryAfter(errors.New("other"), podstatus.FirstClaimWait); again != podstatus.FirstClaimWait {
		t.Errorf("what can be cured: after %s", again)
	}
}
