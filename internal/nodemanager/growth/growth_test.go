package growth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// elastic is a volume type whose volumes grow to a set size.
type elastic struct {
	volumes.Plugin
	has     int64
	err     error
	mounted bool
	calls   int
}

func (*elastic) Name() string { return "example.com/elastic" }

func (e *elastic) CanHandle(volumes.Spec) bool                        { return true }
func (e *elastic) CanGrow(mount.Table, *corev1.PersistentVolume) bool { return e.mounted }
func (e *elastic) Grow(context.Context, *corev1.PersistentVolume) (int64, error) {
	e.calls++
	return e.has, e.err
}

const (
	pendingHere = corev1.PersistentVolumeClaimNodeResizePending
	busyHere    = corev1.PersistentVolumeClaimNodeResizeInProgress
	hopeless    = corev1.PersistentVolumeClaimNodeResizeInfeasible
)

// growthBench is a claim of 1Gi whose volume was given 2Gi, and a pod that uses it.
type growthBench struct {
	*Growth
	api    client.Client
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	grower *elastic
}

func newGrowthBench(t *testing.T, status corev1.ClaimResourceStatus, funcs interceptor.Funcs, changes ...func(*growthBench)) *growthBench {
	t.Helper()
	claim, volume := nodetest.Bound()
	storage := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
	claim.Spec.Resources.Requests, claim.Status.Capacity, volume.Spec.Capacity = storage("2Gi"), storage("1Gi"), storage("2Gi")
	claim.Status.AllocatedResources = storage("2Gi")
	claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
		{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue},
		{Type: "example.com/Kept", Status: corev1.ConditionTrue},
	}
	b := &growthBench{claim: claim, volume: volume, grower: &elastic{has: 2 << 30, mounted: true}}
	for _, change := range changes {
		change(b)
	}
	pod := nodetest.PodWith(nodetest.ClaimVolume("data", false))
	b.api = fake.NewClientBuilder().WithObjects(claim, volume, pod).WithIndex(pod, podclaims.ClaimIndex, podclaims.ClaimNames).WithStatusSubresource(claim).WithInterceptorFuncs(funcs).Build()
	types := volumes.Registry{b.grower}
	b.Growth = New(Options{
		Volumes: types, Devices: types, Mounter: &mounttest.Fake{}, Client: b.api, Live: b.api,
		Events: events.NewFakeRecorder(100), Clock: clocktesting.NewFakeClock(time.Now()),
	})
	return b
}

// look reconciles the claim and reads what became of it.
func (b *growthBench) look(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	result, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b.claim)})
	if err := b.api.Get(t.Context(), client.ObjectKeyFromObject(b.claim), b.claim); err != nil {
		t.Fatal(err)
	}
	return result, err
}

// recorded is the reasons of the recorded events.
func (b *growthBench) recorded() string {
	var reasons []string
	for recorder := b.Events.(*events.FakeRecorder); len(recorder.Events) > 0; {
		reasons = append(reasons, strings.Fields(<-recorder.Events)[1])
	}
	return strings.Join(reasons, ", ")
}

func (b *growthBench) status() corev1.ClaimResourceStatus {
	return b.claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
}

func (b *growthBench) has() string { return b.claim.Status.Capacity.Storage().String() }

func TestAClaimHasItsCapacityOnceItsNodeGrewTheFileSystem(t *testing.T) {
	for _, status := range []corev1.ClaimResourceStatus{pendingHere, busyHere} {
		b := newGrowthBench(t, status, interceptor.Funcs{})
		if _, err := b.look(t); err != nil {
			t.Fatal(err)
		}
		conditions := b.claim.Status.Conditions
		if b.has() != "2Gi" || b.status() != "" || len(conditions) != 1 || conditions[0].Type != "example.com/Kept" {
			t.Errorf("its status is %+v", b.claim.Status)
		}
		if recorded := b.recorded(); recorded != "FileSystemResizeSuccessful, FileSystemResizeSuccessful" {
			t.Errorf("recorded: %s", recorded)
		}
	}
}

func TestAClaimThatIsNotTheNodesIsLeftAlone(t *testing.T) {
	tests := map[string]struct {
		status corev1.ClaimResourceStatus
		change func(*growthBench)
	}{
		"its backend is at work":          {corev1.PersistentVolumeClaimControllerResizeInProgress, func(*growthBench) {}},
		"it was given up":                 {hopeless, func(*growthBench) {}},
		"its volume isn't mounted here":   {pendingHere, func(b *growthBench) { b.grower.mounted = false }},
		"its volume is another claim's":   {pendingHere, func(b *growthBench) { b.volume.Spec.ClaimRef.UID = "claim-2" }},
		"its volume is unknown":           {pendingHere, func(b *growthBench) { b.claim.Spec.VolumeName = "" }},
		"its volume is given as a device": {pendingHere, func(b *growthBench) { b.volume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newGrowthBench(t, test.status, interceptor.Funcs{}, test.change)
			if _, err := b.look(t); err != nil {
				t.Fatal(err)
			}
			if b.status() != test.status || b.has() != "1Gi" {
				t.Errorf("its status is %+v", b.claim.Status)
			}
		})
	}
}

func TestADeviceGrowsThoughItsClaimDoesNotWaitForTheNode(t *testing.T) {
	b := newGrowthBench(t, corev1.PersistentVolumeClaimControllerResizeInProgress, interceptor.Funcs{}, func(b *growthBench) {
		b.volume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	})
	if _, err := b.look(t); err != nil || b.grower.calls != 1 {
		t.Errorf("it was grown %d times (%v)", b.grower.calls, err)
	}
}

func TestAFailedGrowthIsRecordedInTheClaim(t *testing.T) {
	full, broken := errors.New("the file system is damaged"), volumes.ErrNotSupported
	failedBefore := func(b *growthBench) {
		b.claim.Status.Conditions = append(b.claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{
			Type: corev1.PersistentVolumeClaimNodeResizeError, Status: corev1.ConditionTrue, Message: "earlier", LastTransitionTime: metav1.Now(),
		})
	}
	asksForLess := func(b *growthBench) {
		b.claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1500Mi")
	}
	tests := map[string]struct {
		problem error
		has     int64
		changes []func(*growthBench)
		want    corev1.ClaimResourceStatus
	}{
		"it may end well":                           {full, 0, nil, busyHere},
		"it can't end well":                         {broken, 0, nil, hopeless},
		"the storage is smaller than it is said":    {nil, 1 << 30, nil, busyHere},
		"it fails again":                            {full, 0, []func(*growthBench){failedBefore}, busyHere},
		"it fails first, for what is asked no more": {full, 0, []func(*growthBench){asksForLess}, busyHere},
		"it fails again for what is asked no more":  {full, 0, []func(*growthBench){asksForLess, failedBefore}, hopeless},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newGrowthBench(t, pendingHere, interceptor.Funcs{}, test.changes...)
			b.grower.has, b.grower.err = test.has, test.problem
			result, err := b.look(t)
			if err != nil || result.RequeueAfter == 0 {
				t.Fatal(result, err)
			}
			if b.status() != test.want || b.has() != "1Gi" || !hasFailedOnNode(b.claim) {
				t.Errorf("its status is %+v", b.claim.Status)
			}
			if recorded := b.recorded(); recorded != "VolumeResizeFailed, VolumeResizeFailed" {
				t.Errorf("recorded: %s", recorded)
			}
			for _, condition := range b.claim.Status.Conditions {
				if condition.LastProbeTime.IsZero() && condition.Type == corev1.PersistentVolumeClaimNodeResizeError {
					t.Error("kubectl would show that it was probed in the year 1")
				}
			}
			if _, err := b.look(t); err != nil || b.recorded() != "" {
				t.Errorf("the same failure is recorded again (%v)", err)
			}
		})
	}
}

func TestAFailureIsRecordedOnceAndRetriedLessAndLessOften(t *testing.T) {
	b := newGrowthBench(t, pendingHere, interceptor.Funcs{})
	b.grower.err = errors.New("broken")
	var waits []time.Duration
	for range 12 {
		result, err := b.look(t)
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, result.RequeueAfter)
	}
	if recorded := b.recorded(); recorded != "VolumeResizeFailed, VolumeResizeFailed" || waits[0] >= time.Second || waits[11] != lastGrowthWait {
		t.Errorf("recorded: %s; waited %v", recorded, waits)
	}
	b.grower.err = nil
	if _, err := b.look(t); err != nil || b.has() != "2Gi" || hasFailedOnNode(b.claim) {
		t.Errorf("its status is %+v (%v)", b.claim.Status, err)
	}
}

func TestAGrowthEndsTheSameWhicheverOfItsWritesFails(t *testing.T) {
	for number := range 2 {
		for name, effect := range map[string]bool{"lost": false, "unanswered": true} {
			t.Run(name, func(t *testing.T) {
				writes := 0
				b := newGrowthBench(t, pendingHere, interceptor.Funcs{SubResourcePatch: func(
					ctx context.Context, api client.Client, of string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
				) error {
					writes++
					if writes-1 != number {
						return api.SubResource(of).Patch(ctx, object, patch, options...)
					}
					if effect {
						if err := api.SubResource(of).Patch(ctx, object.DeepCopyObject().(client.Object), patch, options...); err != nil {
							return err
						}
					}
					return apierrors.NewInternalError(errors.New("no answer"))
				}})
				if _, err := b.look(t); err == nil {
					t.Fatal("the failure was swallowed")
				}
				if _, err := b.look(t); err != nil || b.has() != "2Gi" || b.status() != "" {
					t.Errorf("its status is %+v (%v)", b.claim.Status, err)
				}
			})
		}
	}
}

func TestAConflictIsReadAgain(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), "data", errors.New("changed"))
	b := newGrowthBench(t, pendingHere, interceptor.Funcs{SubResourcePatch: func(
		context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption,
	) error {
		return conflict
	}})
	if result, err := b.look(t); err != nil || result.RequeueAfter != growthConflictWait || b.grower.calls != 0 {
		t.Errorf("got %+v, %v after %d calls", result, err, b.grower.calls)
	}
}
