package resolve

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/hostpath"
)

//proves:persistentVolumeClaim/bound
func TestHowAClaimIsResolved(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)
		waits  bool
		says   string
	}{
		"a volume": {func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {}, false, ""},
		"an unbound claim": {func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Phase, c.Spec.VolumeName = corev1.ClaimPending, ""
		}, true, "waiting for claim default/data to be bound"},
		"an unbound claim that says why": {func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Phase, c.Spec.VolumeName = corev1.ClaimPending, ""
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
				{Type: stowagev1alpha1.BindableCondition, Status: corev1.ConditionFalse, Reason: "NoMatchingVolume", Message: "2 volumes are too small"},
			}
		}, true, "waiting for claim default/data to be bound: 2 volumes are too small"},
		"a claim whose binding isn't finished": {func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Phase = corev1.ClaimPending
		}, true, "waiting for claim default/data to be bound"},
		"a lost claim": {func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Phase = corev1.ClaimLost
		}, true, "claim default/data lost its volume pv"},
		"an unbound claim that is being deleted": {func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
			c.Spec.VolumeName = ""
		}, true, "claim default/data is being deleted"},
		"a missing volume": {func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Spec.VolumeName = "other"
		}, true, "waiting for volume other, which doesn't exist"},
		"a volume without a claimRef": {func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = nil
		}, true, "volume pv isn't bound to claim default/data"},
		"a volume of an earlier claim of that name": {func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.ClaimRef.UID = "claim-0"
		}, true, "volume pv isn't bound to claim default/data"},
		"a device of a type that has none": {func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		}, false, "volume of type hostPath and volumeMode Block is not supported"},
		"another node's volume": {func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}},
			}}}}
		}, false, "volume pv can't be used on node n1"},
		"a type that isn't served": {func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "other.example.com", VolumeHandle: "x"}}
		}, false, "volume of type csi with driver other.example.com is not supported"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			claim, volume := nodetest.Bound()
			test.change(claim, volume)
			live := fake.NewClientBuilder().WithObjects(claim, volume, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}).Build()
			resolver := Resolver{Node: "n1", Cached: live, Live: live, Types: volumes.Registry{hostpath.New(&mounttest.Fake{}, t.TempDir())}}
			source := nodetest.ClaimVolume("data", false)

			resolved, err := resolver.Resolve(t.Context(), nodetest.PodWith(source), source)

			if test.says == "" {
				if err != nil || resolved.Location() != (poddir.Location{Plugin: "kubernetes.io/host-path", Name: "pv"}) || resolved.Access != mount.ReadWrite {
					t.Errorf("got %+v, %v", resolved, err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), test.says) || IsWait(err) != test.waits {
				t.Errorf("got %v, want one that says %q", err, test.says)
			}
		})
	}
}

func TestAForbiddenClaimIsWaitedForAndOtherErrorsAreReturned(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data", errors.New("no relationship found"))
	for failure, waits := range map[error]bool{forbidden: true, apierrors.NewInternalError(errors.New("down")): false} {
		live := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return failure
			},
		}).Build()
		source := nodetest.ClaimVolume("data", false)
		_, err := (&Resolver{Node: "n1", Cached: live, Live: live}).Resolve(t.Context(), nodetest.PodWith(source), source)
		if err == nil || IsWait(err) != waits {
			t.Errorf("%v became %v", failure, err)
		}
	}
}

//proves:persistentVolumeClaim/readOnly
func TestWhenAVolumeIsReadOnly(t *testing.T) {
	tests := map[string]struct {
		modes   []corev1.PersistentVolumeAccessMode
		sources []corev1.Volume
		csi     *corev1.CSIPersistentVolumeSource
		want    mount.Access
	}{
		"by default not":                   {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.Volume{nodetest.ClaimVolume("a", false)}, nil, mount.ReadWrite},
		"the pod says so":                  {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.Volume{nodetest.ClaimVolume("a", true)}, nil, mount.ReadOnly},
		"the pod says so and otherwise":    {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.Volume{nodetest.ClaimVolume("a", true), nodetest.ClaimVolume("b", false)}, nil, mount.ReadWrite},
		"the volume is for readers only":   {[]corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, []corev1.Volume{nodetest.ClaimVolume("a", false)}, nil, mount.ReadOnly},
		"the volume is for readers, also":  {[]corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteOnce}, []corev1.Volume{nodetest.ClaimVolume("a", false)}, nil, mount.ReadWrite},
		"the volume's csi source says so":  {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.Volume{nodetest.ClaimVolume("a", false)}, &corev1.CSIPersistentVolumeSource{ReadOnly: true}, mount.ReadOnly},
		"the volume's csi source says not": {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []corev1.Volume{nodetest.ClaimVolume("a", false)}, &corev1.CSIPersistentVolumeSource{}, mount.ReadWrite},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
				AccessModes: test.modes, PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: test.csi},
			}}
			if got := accessOf(volume, onlyReads(nodetest.PodWith(test.sources...), "data")); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTypesHaveTheNamesThatUsersWriteThemWith(t *testing.T) {
	tests := map[string]volumes.Spec{
		"secret":  {Volume: corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}}},
		"image":   {Volume: corev1.Volume{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{}}}},
		"unknown": {},
		"nfs":     {PersistentVolume: &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}}}},
	}
	for want, spec := range tests {
		if got := typeOf(spec); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAnEmptyDirNeedsNoClaim(t *testing.T) {
	source := corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	resolver := Resolver{Types: volumes.Registry{emptydir.New(&mounttest.Fake{})}}
	resolved, err := resolver.Resolve(t.Context(), nodetest.PodWith(source), source)
	if err != nil || resolved.Location() != (poddir.Location{Plugin: "kubernetes.io/empty-dir", Name: "scratch"}) {
		t.Errorf("got %+v, %v", resolved, err)
	}
}
