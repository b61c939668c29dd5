package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// scenario is a world with random events: users change objects, reconcilers run in between,
// writes get lost, managers restart.
type scenario struct {
	*world
	cluster *memory
	// bound are the volumes of all claims that were seen bound, by the claims' UIDs.
	bound map[types.UID]types.UID
	// retained are the volumes that people set to Retain at some time.
	retained map[string]bool
}

// newScenario begins with two backends, one of which waits for consumers, and nodes.
func newScenario() *scenario {
	cluster := newMemory()
	s := &scenario{world: newWorldIn(cluster), cluster: cluster, bound: map[types.UID]types.UID{}, retained: map[string]bool{}}
	s.create(Node("node-1"), Node("node-2"), LocalBackend("disks"), LocalBackend("later", waitingForConsumer))
	s.comeToRest()
	return s
}

// Whatever people do and whatever fails, the cluster comes to rest, with every
// claim and every volume in their right place.
func TestBindingComesToRestWhateverHappens(t *testing.T) {
	RegisterFailHandler(func(message string, _ ...int) { panic(message) })
	rapid.Check(t, func(t *rapid.T) {
		s := newScenario()
		t.Repeat(map[string]func(*rapid.T){
			"create claim":     s.createClaim,
			"delete claim":     s.deleteClaim,
			"create volume":    s.createVolume,
			"delete volume":    s.deleteVolume,
			"free volume":      s.freeVolume,
			"reserve volume":   s.reserveVolume,
			"label volume":     s.labelVolume,
			"change policy":    s.changePolicy,
			"create pod":       s.createPod,
			"delete pod":       s.deletePod,
			"choose default":   s.chooseDefault,
			"fail the storage": s.failStorage,
			"run":              s.run,
			"settle":           s.settleAndCheck,
		})
		s.settleAndCheck(t)
	})
}

func (s *scenario) createClaim(t *rapid.T) {
	claim := Claim(ClaimNamed(drawName(t, "claim")), Asking(drawSize(t)))
	switch class := drawClass(t); class {
	case "unset":
		claim.Spec.StorageClassName = nil
	default:
		claim.Spec.StorageClassName = &class
	}
	switch rapid.IntRange(0, 7).Draw(t, "asks for") {
	case 0:
		AskingFor(drawName(t, "volume"))(claim)
	case 1:
		Selecting("disk", "ssd")(claim)
	}
	s.createUnlessThere(t, claim)
}

func (s *scenario) createVolume(t *rapid.T) {
	pv := Volume(drawName(t, "volume"), Holding(drawSize(t)), OfClass(drawOne(t, "class", "", "", "disks", "later")))
	switch rapid.IntRange(0, 7).Draw(t, "is") {
	case 0, 1:
		ReservedTo(drawName(t, "claim"))(pv)
	case 2:
		Labelled("disk", "ssd")(pv)
	case 3:
		OnNode("node-1")(pv)
	case 4:
		Reclaimed(corev1.PersistentVolumeReclaimDelete)(pv)
	}
	s.createUnlessThere(t, pv)
}

func (s *scenario) createPod(t *rapid.T) {
	s.createUnlessThere(t, Pod(drawName(t, "pod"), drawOne(t, "node", "", "node-1", "node-2"), drawName(t, "claim")))
}

func (s *scenario) createUnlessThere(t *rapid.T, object client.Object) {
	if !s.gone(object.DeepCopyObject().(client.Object)) {
		t.Skip("it is there")
	}
	s.create(object)
}

func (s *scenario) deleteClaim(t *rapid.T) {
	s.delete(s.drawObject(t, &corev1.PersistentVolumeClaimList{}))
}

func (s *scenario) deletePod(t *rapid.T) { s.delete(s.drawObject(t, &corev1.PodList{})) }

func (s *scenario) deleteVolume(t *rapid.T) { s.delete(s.drawVolume(t)) }

// freeVolume removes the claimRef of a volume, as users do to free a released volume, or by
// mistake.
func (s *scenario) freeVolume(t *rapid.T) {
	update(s.world, s.drawVolume(t), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
}

// reserveVolume keeps a volume for a claim that may not be there, by name and
// maybe by UID. One that a claim has is not taken from it: that claim would be Lost,
// and rightly so.
func (s *scenario) reserveVolume(t *rapid.T) {
	pv := s.drawVolume(t)
	claim := Claim(ClaimNamed(drawName(t, "claim")))
	for _, other := range s.claimsThere() {
		if other.Name != claim.Name && (other.Spec.VolumeName == pv.Name || provisioned.VolumeID(other) == pv.Name) {
			t.Skip("it is a claim's")
		}
	}
	known := s.direct.Get(context.Background(), client.ObjectKeyFromObject(claim), claim) == nil
	update(s.world, pv, func(pv *corev1.PersistentVolume) {
		ReservedTo(claim.Name)(pv)
		if known && rapid.Bool().Draw(t, "by UID") {
			pv.Spec.ClaimRef.UID = claim.UID
		}
	})
}

func (s *scenario) labelVolume(t *rapid.T) {
	update(s.world, s.drawVolume(t), Labelled("disk", drawOne(t, "disk", "ssd", "hdd")))
}

func (s *scenario) changePolicy(t *rapid.T) {
	policy := drawOne(t, "policy", corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain)
	pv := s.drawVolume(t)
	update(s.world, pv, Reclaimed(policy))
	if policy == corev1.PersistentVolumeReclaimRetain {
		s.retained[pv.Name] = true
	}
}

// chooseDefault makes one class the default, or none.
func (s *scenario) chooseDefault(t *rapid.T) {
	chosen := drawOne(t, "default", "", "disks", "later")
	for _, name := range []string{"disks", "later"} {
		update(s.world, LocalBackend(name), func(object *stowagev1alpha1.StorageBackend) {
			object.Spec.StorageClass.IsDefault = name == chosen
		})
	}
}

func (s *scenario) failStorage(t *rapid.T) {
	s.storage.FailNext(drawOne(t, "failure",
		backend.Unavailable.Errorf("away"), backend.InProgress.Errorf("at work"), backend.Exhausted.Errorf("full"), errInjected))
}

// run has all reconcilers run once, with some of their writes lost or not answered,
// and maybe a restart after it.
func (s *scenario) run(t *rapid.T) {
	s.faults = map[int]fault{}
	for range rapid.IntRange(0, 2).Draw(t, "faults") {
		number := s.written + rapid.IntRange(0, 9).Draw(t, "write")
		s.faults[number] = drawOne(t, "fault", lost, unanswered, contended)
	}
	_ = s.round()
	s.faults = nil
	if rapid.IntRange(0, 3).Draw(t, "restart") == 0 {
		s.restart()
	}
}

// settleAndCheck lets the cluster come to rest and looks at all that is in it. A
// manager that starts then finds nothing to do.
func (s *scenario) settleAndCheck(t *rapid.T) {
	s.comeToRest()
	s.check(t)
	s.restart()
	before := s.cluster.accepted
	_ = s.round()
	if written := s.cluster.accepted - before; written > 0 {
		t.Fatalf("a manager that starts in a cluster at rest writes %d times", written)
	}
}

// comeToRest is settle that ends when nothing is written any more, whatever is
// tried and refused.
func (s *scenario) comeToRest() {
	for s.storage.Delete(context.Background(), "nothing") != nil {
		// The storage fails no more.
		continue
	}
	for range maxRounds {
		before := s.cluster.accepted
		_ = s.round()
		if s.cluster.accepted == before {
			return
		}
	}
	panic(fmt.Sprintf("the cluster did not come to rest: %v", s.round()))
}

func (s *scenario) claimsThere() []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, object := range s.all(&corev1.PersistentVolumeClaimList{}) {
		claims = append(claims, object.(*corev1.PersistentVolumeClaim))
	}
	return claims
}

func (s *scenario) volumesThere() []*corev1.PersistentVolume {
	var volumes []*corev1.PersistentVolume
	for _, object := range s.all(&corev1.PersistentVolumeList{}) {
		volumes = append(volumes, object.(*corev1.PersistentVolume))
	}
	return volumes
}

func (s *scenario) drawVolume(t *rapid.T) *corev1.PersistentVolume {
	return s.drawObject(t, &corev1.PersistentVolumeList{}).(*corev1.PersistentVolume)
}

func (s *scenario) drawObject(t *rapid.T, list client.ObjectList) client.Object {
	objects := s.all(list)
	if len(objects) == 0 {
		t.Skip("there is none")
	}
	byName := map[string]client.Object{}
	for _, object := range objects {
		byName[object.GetName()] = object
	}
	return byName[drawOne(t, "object", slices.Sorted(maps.Keys(byName))...)]
}

func (s *scenario) class(name string) *storagev1.StorageClass {
	class := &storagev1.StorageClass{}
	if s.direct.Get(context.Background(), client.ObjectKey{Name: name}, class) != nil {
		return nil
	}
	return class
}

func drawName(t *rapid.T, kind string) string {
	return fmt.Sprintf("%s-%d", kind, rapid.IntRange(0, 4).Draw(t, kind))
}

func drawSize(t *rapid.T) string { return drawOne(t, "size", "1Gi", "2Gi", "3Gi") }

func drawClass(t *rapid.T) string { return drawOne(t, "class", "", "", "", "disks", "later", "unset") }

func drawOne[T any](t *rapid.T, what string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, what)
}
