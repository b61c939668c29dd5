package drivers_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/storage/volume"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/drivers"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func served(t *testing.T) drivers.Drivers {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := stowagev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	csi := &stowagev1alpha1.StorageBackend{
		ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"},
		Spec:       stowagev1alpha1.StorageBackendSpec{CSI: &stowagev1alpha1.CSIBackend{Driver: "disk.example.com"}},
	}
	return drivers.New(clientfake.NewClientBuilder().WithScheme(scheme).WithObjects(csi, LocalBackend("local.example.com")).Build())
}

func TestADriverIsServedAndAttaches(t *testing.T) {
	of := served(t)
	for driver, want := range map[string]struct{ serves, attaches bool }{
		stowagev1alpha1.NFSDriver:      {true, false},
		stowagev1alpha1.GCEDriver:      {true, true},
		"disk.example.com":             {true, true},
		"other.example.com":            {},
		"local.example.com":            {}, // a StorageBackend of another kind has that name
		"kubernetes.io/no-provisioner": {},
		"":                             {},
	} {
		serves, err := of.Serves(t.Context(), driver)
		if err != nil || serves != want.serves {
			t.Errorf("that driver %q is served is %t, %v", driver, serves, err)
		}
		attaches, err := of.Attaches(t.Context(), driver)
		if err != nil || attaches != want.attaches {
			t.Errorf("that driver %q attaches is %t, %v", driver, attaches, err)
		}
	}
}

func TestAVolumeOfADriverThatIsServedWasMadeByIt(t *testing.T) {
	of := served(t)
	for name, test := range map[string]struct {
		provisioner string
		source      *corev1.CSIPersistentVolumeSource
		want        bool
	}{
		"made by it":              {"disk.example.com", &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "v"}, true},
		"by hand":                 {"", &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "v"}, false},
		"made by another":         {"x.example.com", &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "v"}, false},
		"without a handle":        {"disk.example.com", &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com"}, false},
		"of a driver left alone":  {"x.example.com", &corev1.CSIPersistentVolumeSource{Driver: "x.example.com", VolumeHandle: "v"}, false},
		"that is of another type": {"disk.example.com", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			pv := Volume("pv", func(pv *corev1.PersistentVolume) {
				pv.Annotations = map[string]string{volume.AnnDynamicallyProvisioned: test.provisioner}
				pv.Spec.CSI = test.source
			})
			if made, err := of.MadeVolume(t.Context(), pv); err != nil || made != test.want {
				t.Errorf("it reports %t, %v", made, err)
			}
		})
	}
}
