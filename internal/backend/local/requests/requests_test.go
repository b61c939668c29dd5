package requests_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/local/requests"
)

func TestWhatIsRequestedIsTheSumOfTheVolumesThatAreThere(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	asked, there := requests.New(), map[string]*stowagev1alpha1.NodeVolume{}
	backends, nodes := []string{"fast", "slow"}, []string{"node-1", "node-2"}
	for range 1000 {
		volume := &stowagev1alpha1.NodeVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pvc-%d", random.IntN(20))}}
		if random.IntN(3) == 0 {
			delete(there, volume.Name)
			requests.Remove(asked, volume)
		} else {
			volume.Labels = map[string]string{stowagev1alpha1.BackendLabel: backends[random.IntN(2)]}
			volume.Spec.NodeName = nodes[random.IntN(2)]
			volume.Spec.Capacity = *resource.NewQuantity(random.Int64N(100), resource.BinarySI)
			if random.IntN(2) == 0 {
				volume.Status.Conditions = []metav1.Condition{{Type: stowagev1alpha1.ProvisionedCondition, Status: metav1.ConditionTrue}}
			}
			there[volume.Name] = volume
			asked.Set(volume)
		}
		except := fmt.Sprintf("pvc-%d", random.IntN(20))
		for _, backend := range backends {
			for _, node := range nodes {
				if got, want := asked.At(backend, node, except), sumAt(there, backend, node, except); got != want {
					t.Fatalf("%+v is requested of backend %s on %s, not %+v", got, backend, node, want)
				}
			}
		}
	}
	for volume := range maps.Values(there) {
		requests.Remove(asked, volume)
	}
	if !requests.IsEmpty(asked) {
		t.Errorf("something is remembered of volumes that are gone: %+v", asked)
	}
}

func sumAt(volumes map[string]*stowagev1alpha1.NodeVolume, backend, node, except string) (sum requests.Requested) {
	for _, volume := range volumes {
		if volume.Labels[stowagev1alpha1.BackendLabel] != backend || volume.Spec.NodeName != node || volume.Name == except {
			continue
		}
		sum.All += volume.Spec.Capacity.Value()
		if !meta.IsStatusConditionTrue(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition) {
			sum.Unmade += volume.Spec.Capacity.Value()
		}
	}
	return sum
}

func TestADeletionThatAWatchMissedIsOneAllTheSame(t *testing.T) {
	asked := requests.New()
	volume := &stowagev1alpha1.NodeVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	asked.Set(volume)
	requests.Remove(asked, toolscache.DeletedFinalStateUnknown{Key: volume.Name, Obj: volume})
	if !requests.IsEmpty(asked) {
		t.Error("the volume is remembered")
	}
}
