package undelete_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/kubectltest"
	"github.com/stowage-dev/stowage/internal/kubectl/undelete"
	"github.com/stowage-dev/stowage/internal/volume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// released is a volume of Stowage's, policy Delete, whose claim default/data is gone.
func released(changes ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := Volume("v", OfClass("fast"), ReservedTo("data"), Reclaimed(corev1.PersistentVolumeReclaimDelete))
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: stowagev1alpha1.LocalDriver, VolumeHandle: "v"}}
	pv.Spec.ClaimRef.UID = "gone"
	pv.UID = "v"
	pv.Annotations = map[string]string{"pv.kubernetes.io/bound-by-controller": "yes"}
	pv.Status.Phase = corev1.VolumeReleased
	for _, change := range changes {
		change(pv)
	}
	return pv
}

// binding is a client whose claims are bound to the volume they name as soon as both agree, as
// a binder does it. It fails the write of the given number, from 1 on, before or after it.
type binding struct {
	client.WithWatch
	writes, fails int
	afterwards    bool
}

var errInterrupted = errors.New("interrupted")

func newBinding(objects ...client.Object) *binding {
	b := &binding{}
	b.WithWatch = interceptor.NewClient(kubectltest.Client(objects...), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if (&client.CreateOptions{}).ApplyOptions(options).DryRun != nil {
				return c.Create(ctx, object, options...)
			}
			object.SetUID(types.UID("new-" + object.GetName()))
			return b.write(ctx, func() error { return c.Create(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return b.write(ctx, func() error { return c.Patch(ctx, object, patch, options...) })
		},
	})
	return b
}

func (b *binding) write(ctx context.Context, do func() error) error {
	b.writes++
	if b.writes == b.fails && !b.afterwards {
		return errInterrupted
	}
	if err := do(); err != nil {
		return err
	}
	b.bind(ctx)
	if b.writes == b.fails {
		return errInterrupted
	}
	return nil
}

func (b *binding) bind(ctx context.Context) {
	claims, pv := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolume{}
	if b.List(ctx, claims) != nil || b.Get(ctx, client.ObjectKey{Name: "v"}, pv) != nil {
		return
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if ref := pv.Spec.ClaimRef; claim.Spec.VolumeName == pv.Name && ref.Name == claim.Name && ref.Namespace == claim.Namespace && ref.UID == "" {
			ref.UID = claim.UID
			_ = b.Update(ctx, pv)
			pv.Status.Phase, claim.Status.Phase = corev1.VolumeBound, corev1.ClaimBound
			_, _ = b.Status().Update(ctx, pv), b.Status().Update(ctx, claim)
		}
	}
}

func run(t *testing.T, b client.Client, arguments string) (kubectltest.Output, error) {
	t.Helper()
	return kubectltest.Run(t.Context(), undelete.New, arguments+" --timeout 1ms", b)
}

// isGivenBack reports what is wrong after the volume was given to a claim.
func isGivenBack(t *testing.T, b client.Client, namespace, name string, policy corev1.PersistentVolumeReclaimPolicy) {
	t.Helper()
	pv, claim := &corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{}
	if err := errors.Join(b.Get(t.Context(), client.ObjectKey{Name: "v"}, pv), b.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, claim)); err != nil {
		t.Fatal(err)
	}
	if pv.Status.Phase != corev1.VolumeBound || pv.Spec.ClaimRef.UID != claim.UID || pv.Spec.PersistentVolumeReclaimPolicy != policy || len(pv.Annotations) != 0 {
		t.Errorf("the volume is %s, tied to %v, with policy %s and annotations %v", pv.Status.Phase, pv.Spec.ClaimRef, pv.Spec.PersistentVolumeReclaimPolicy, pv.Annotations)
	}
	if got := claim.Spec; got.VolumeName != "v" || *got.StorageClassName != "fast" || got.Resources.Requests.Storage().String() != "1Gi" {
		t.Errorf("the claim asks for %+v", got)
	}
}

func TestUndeleteBindsTheVolumeAndRestoresItsPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		pv              *corev1.PersistentVolume
		arguments       string
		namespace, name string
		policy          corev1.PersistentVolumeReclaimPolicy
	}{
		"to its former claim":    {released(), "v", "default", "data", corev1.PersistentVolumeReclaimDelete},
		"to another claim":       {released(), "v --to shop/new", "shop", "new", corev1.PersistentVolumeReclaimDelete},
		"with the policy Retain": {released(Reclaimed(corev1.PersistentVolumeReclaimRetain)), "v", "default", "data", corev1.PersistentVolumeReclaimRetain},
		"of another driver, in its undelete window": {released(func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.Driver, pv.Status.Reason = "other", volume.UndeletableReason(kubectltest.Now)
		}), "v", "default", "data", corev1.PersistentVolumeReclaimDelete},
		"of another driver, Retain": {released(Reclaimed(corev1.PersistentVolumeReclaimRetain), func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other" }), "v", "default", "data", corev1.PersistentVolumeReclaimRetain},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBinding(test.pv)
			got, err := run(t, b, test.arguments)
			if want := "Volume v is bound to claim " + test.namespace + "/" + test.name; err != nil || !strings.Contains(got.Out, want) {
				t.Fatalf("%v: %s", err, got.Out)
			}
			isGivenBack(t, b, test.namespace, test.name, test.policy)
		})
	}
}

func TestUndeleteContinuesAfterAnInterruptionAtEveryWrite(t *testing.T) {
	for number := 1; number <= 3; number++ {
		for _, afterwards := range []bool{false, true} {
			b := newBinding(released())
			b.fails, b.afterwards = number, afterwards
			if _, err := run(t, b, "v"); !errors.Is(err, errInterrupted) {
				t.Fatalf("write %d: %v", number, err)
			}
			pv := &corev1.PersistentVolume{}
			if err := b.Get(t.Context(), client.ObjectKey{Name: "v"}, pv); err != nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Name != "data" {
				t.Fatalf("after write %d the volume is free for all: %v", number, pv.Spec.ClaimRef)
			}
			if restored := number == 3 && afterwards; restored {
				continue
			}
			if _, err := run(t, b, "v"); err != nil {
				t.Fatalf("again after write %d: %v", number, err)
			}
			isGivenBack(t, b, "default", "data", corev1.PersistentVolumeReclaimDelete)
		}
	}
}

func TestUndeleteKeepsTheDataWhileTheClaimIsNotBound(t *testing.T) {
	objects := kubectltest.Client(released())
	_, err := run(t, objects, "v")
	if err == nil || !strings.Contains(err.Error(), "its policy stays Retain, which keeps the data: see kubectl stowage explain pvc data -n default") {
		t.Fatalf("got %v", err)
	}
	pv := &corev1.PersistentVolume{}
	if err := objects.Get(t.Context(), client.ObjectKey{Name: "v"}, pv); err != nil || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Error(err, pv.Spec.PersistentVolumeReclaimPolicy)
	}
}

func TestUndeleteRefusesWhatWouldLoseOrTakeData(t *testing.T) {
	bound := func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound }
	begunFor := func(pv *corev1.PersistentVolume) {
		pv.Annotations[undelete.PolicyAnnotation], pv.Spec.ClaimRef.UID = "Delete", "held"
		pv.Status.Phase = corev1.VolumeBound
	}
	terminating := func(pv *corev1.PersistentVolume) {
		pv.DeletionTimestamp, pv.Finalizers = ptr.To(metav1.NewTime(kubectltest.Now)), []string{"stowage.dev/reclaim"}
	}
	foreign := func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other" }
	going := Claim(ClaimUID("x"), AskingFor("v"))
	going.DeletionTimestamp, going.Finalizers = ptr.To(metav1.NewTime(kubectltest.Now)), []string{"kubernetes.io/pvc-protection"}
	for name, test := range map[string]struct {
		pv        *corev1.PersistentVolume
		claim     *corev1.PersistentVolumeClaim
		arguments string
		want      string
	}{
		"a volume that has a claim":               {released(bound), Claim(), "v", "belongs to claim default/data, which exists and has the data: nothing is to be given back"},
		"a volume to be taken from its claim":     {released(bound), Claim(), "v --to shop/mine", `-p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'`},
		"a volume whose claim the cache lost":     {released(), Claim(ClaimUID("gone"), AskingFor("v")), "v", "belongs to claim default/data, which exists"},
		"a volume that another undelete gave":     {released(begunFor), Claim(ClaimUID("held"), AskingFor("v")), "v --to shop/mine", "belongs to claim default/data, which exists"},
		"a volume that is being deleted":          {released(terminating), nil, "v", `"persistentVolumeReclaimPolicy":"Retain"`},
		"another driver's, which is being erased": {released(foreign), nil, "v", "its data may be gone already"},
		"a volume that is being emptied":          {released(Reclaimed(corev1.PersistentVolumeReclaimRecycle)), nil, "v", "its data may be gone already"},
		"a claim that has another volume":         {released(), Claim(ClaimUID("x"), AskingFor("w")), "v", "exists and asks for another volume"},
		"a claim that is being deleted":           {released(), going, "v", "is still being deleted"},
		"a volume that isn't there":               {released(), nil, "w", "kubectl stowage list --retained has the names"},
		"a target without a namespace":            {released(), nil, "v --to data", "--to is a claim as NAMESPACE/NAME"},
		"a dry run by the client":                 {released(), nil, "v --dry-run=client", "--dry-run is none or server"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{test.pv}
			if test.claim != nil {
				objects = append(objects, test.claim)
			}
			b := newBinding(objects...)
			if _, err := run(t, b, test.arguments); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q, got %v", test.want, err)
			}
			if b.writes != 0 {
				t.Errorf("it wrote %d times", b.writes)
			}
		})
	}
}

func TestUndeleteTouchesNothingIfTheClaimIsRefused(t *testing.T) {
	writes := 0
	b := interceptor.NewClient(kubectltest.Client(released()), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data", errors.New("exceeded quota"))
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			writes++
			return nil
		},
	})
	if _, err := run(t, b, "v"); err == nil || !strings.Contains(err.Error(), "exceeded quota") || writes > 0 {
		t.Errorf("%d writes, %v", writes, err)
	}
}

func TestUndeleteLosesAgainstAChangeAtTheSameTime(t *testing.T) {
	b := interceptor.NewClient(kubectltest.Client(released()), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			other := &corev1.PersistentVolume{}
			if err := c.Get(ctx, client.ObjectKey{Name: "v"}, other); err != nil {
				return err
			}
			other.Labels = map[string]string{"changed": "yes"}
			if err := c.Update(ctx, other); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	if _, err := run(t, b, "v"); err == nil || !strings.Contains(err.Error(), "the object changed at the same time: run the command again") {
		t.Errorf("got %v", err)
	}
}
