package resolve

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/gcepd"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
)

//proves:gcePersistentDisk/claim gcePersistentDisk/refused
func TestAnExistingDiskIsADiskOfOursWhereABackendAllowsIt(t *testing.T) {
	tests := map[string]struct {
		allowed   bool
		forbidden bool
		change    func(*corev1.PersistentVolume, *corev1.Node)
		refused   bool
		says      string
	}{
		"allowed":                 {allowed: true},
		"not allowed":             {refused: true, says: "set gce.existingDisks on the StorageBackend"},
		"not known to be allowed": {allowed: true, forbidden: true, refused: true, says: "set gce.existingDisks on the StorageBackend"},
		"not allowed, nor to be had": {
			change: func(_ *corev1.PersistentVolume, node *corev1.Node) { node.Spec.ProviderID = "" },
			says:   "set gce.existingDisks on the StorageBackend",
		},
		"allowed, on no machine of Google's": {
			allowed: true, change: func(_ *corev1.PersistentVolume, node *corev1.Node) { node.Spec.ProviderID = "" }, says: "no machine at Google",
		},
		"allowed, and in another zone": {
			allowed: true, change: func(volume *corev1.PersistentVolume, _ *corev1.Node) {
				volume.Labels = map[string]string{corev1.LabelTopologyZone: "other"}
			}, says: "is in zone other",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			claim, volume := nodetest.Bound()
			volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "legacy", ReadOnly: true}}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{ProviderID: "gce://p/z/n1"}}
			if test.change != nil {
				test.change(volume, node)
			}
			backend := &stowagev1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}}
			backend.Spec.GCE = &stowagev1alpha1.GCEBackend{ExistingDisks: test.allowed}
			resolver := resolverOfDisks(t, test.forbidden, claim, volume, node, backend)
			source := nodetest.ClaimVolume("data", false)

			resolved, err := resolver.Resolve(t.Context(), nodetest.PodWith(source), source)

			if test.says != "" && !test.refused {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %+v, %v", resolved, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkRefusal(t, resolved, test.refused, test.says)
			if got := resolved.PersistentVolume.Spec.CSI; got.Driver != stowagev1alpha1.GCEDriver || got.VolumeHandle != "projects/p/zones/z/disks/legacy" {
				t.Errorf("it is %+v", got)
			}
			if resolved.Access != mount.ReadOnly || resolved.Location() != (poddir.Location{Plugin: "kubernetes.io/csi", Name: "pv"}) {
				t.Errorf("it is %v at %+v", resolved.Access, resolved.Location())
			}
		})
	}
}

func checkRefusal(t *testing.T, resolved *ResolvedVolume, refused bool, says string) {
	t.Helper()
	switch {
	case !refused && resolved.Refused != nil, refused && !errors.Is(resolved.Refused, volumes.ErrNotSupported):
		t.Errorf("it is refused: %v", resolved.Refused)
	case refused && !strings.Contains(resolved.Refused.Error(), says):
		t.Errorf("it is refused: %v", resolved.Refused)
	}
}

// resolverOfDisks is one of a node that serves disks.
func resolverOfDisks(t *testing.T, forbidden bool, objects ...client.Object) Resolver {
	t.Helper()
	scheme := runtime.NewScheme()
	disks, err := gcepd.New(stowagev1alpha1.GCEDriver, gcepd.Options{Folder: t.TempDir()})
	if err := errors.Join(err, clientgoscheme.AddToScheme(scheme), stowagev1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	caller, err := csi.NewCaller(csi.CallerOptions{Mounter: mount.Kernel{}, Root: t.TempDir(), Drivers: []drivers.Driver{disks}})
	if err != nil {
		t.Fatal(err)
	}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if forbidden {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "storagebackends"}, "", errors.New("not granted"))
			}
			return to.List(ctx, list, options...)
		},
	}).Build()
	return Resolver{Node: "n1", Cached: live, Live: live, Types: volumes.Registry{csi.New(caller)}}
}
