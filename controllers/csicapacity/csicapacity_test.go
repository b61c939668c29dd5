package csicapacity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	k8sevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/program"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const driver = "disk.example.com"

// cluster has two drivers with a class and two zones each, and an object of another manager.
func cluster(t *testing.T) (reconciler.Dependencies, *events.FakeRecorder) {
	t.Helper()
	scheme, err := program.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	cluster, recorder := clientfake.NewClientBuilder().WithScheme(scheme).Build(), events.NewFakeRecorder(100)
	deps := reconciler.Dependencies{Client: cluster, Namespace: "stowage-system", Events: recorder}
	for _, name := range []string{driver, "other.example.com"} {
		object := csiBackend(name)
		for _, zone := range []string{"a", "b"} {
			capacity := objectFor(deps.Namespace, object, "class-"+name, map[string]string{"zone": zone})
			capacity.Annotations = map[string]string{"is": name + " " + zone}
			if err := cluster.Create(t.Context(), capacity); err != nil {
				t.Fatal(err)
			}
		}
		if err := cluster.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	foreign := &storagev1.CSIStorageCapacity{
		ObjectMeta:       metav1.ObjectMeta{Namespace: deps.Namespace, Name: "theirs", Labels: map[string]string{DriverLabel: driver, ManagedByLabel: "external-provisioner"}},
		StorageClassName: "class-" + driver,
	}
	if err := cluster.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	return deps, recorder
}

func csiBackend(name string) *stowagev1alpha1.StorageBackend {
	object := LocalBackend(name)
	object.Spec.Local, object.Spec.CSI = nil, &stowagev1alpha1.CSIBackend{Driver: name}
	return object
}

// are names the objects of requests by their driver and zone.
func are(t *testing.T, reader client.Reader, requests []reconcile.Request) (names []string) {
	t.Helper()
	for _, request := range requests {
		capacity := &storagev1.CSIStorageCapacity{}
		if err := reader.Get(t.Context(), request.NamespacedName, capacity); err != nil {
			t.Fatal(err)
		}
		names = append(names, capacity.Annotations["is"])
	}
	slices.Sort(names)
	return names
}

func TestAVolumeWakesTheRoomThatItIsIn(t *testing.T) {
	deps, _ := cluster(t)
	in := func(zones ...string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver}
			pv.Spec.NodeAffinity = nil
			if len(zones) > 0 {
				pv.Spec.NodeAffinity = backend.AffinityTo([]corev1.TopologySelectorTerm{{
					MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: zones}},
				}})
			}
		}
	}
	for name, test := range map[string]struct {
		pv   *corev1.PersistentVolume
		want []string
	}{
		"in one zone":     {Volume("v", in("b")), []string{driver + " b"}},
		"in both":         {Volume("v", in("a", "b")), []string{driver + " a", driver + " b"}},
		"anywhere":        {Volume("v", in()), []string{driver + " a", driver + " b"}},
		"in another zone": {Volume("v", in("c")), nil},
		"of a driver not ours": {Volume("v", func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "x.example.com"}
		}), nil},
		"of no driver": {Volume("v"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := are(t, deps.Client, watches{deps.Client, deps.Namespace}.ofVolume(t.Context(), test.pv)); !slices.Equal(got, test.want) {
				t.Errorf("it wakes %v", got)
			}
		})
	}
}

func TestARefusedClaimWakesTheRoomOfItsClass(t *testing.T) {
	deps, _ := cluster(t)
	claim := Claim(InClass("class-" + driver))
	placed := claim.DeepCopy()
	placed.Annotations = map[string]string{volume.AnnSelectedNode: "node-1"}
	if !refused.Update(k8sevent.UpdateEvent{ObjectOld: placed, ObjectNew: claim}) {
		t.Error("it passes no claim that its node can't have")
	}
	bound := claim.DeepCopy()
	bound.Spec.VolumeName = "v"
	for name, update := range map[string]k8sevent.UpdateEvent{
		"placed": {ObjectOld: claim, ObjectNew: placed}, "bound": {ObjectOld: placed, ObjectNew: bound}, "unchanged": {ObjectOld: claim, ObjectNew: claim},
	} {
		if refused.Update(update) {
			t.Errorf("it passes a claim that is %s", name)
		}
	}
	if got := are(t, deps.Client, watches{deps.Client, deps.Namespace}.ofClaim(t.Context(), claim)); !slices.Equal(got, []string{driver + " a", driver + " b"}) {
		t.Errorf("it wakes %v", got)
	}
}

func TestVolumesThatWereThereWakeNothing(t *testing.T) {
	if madeOrRemoved.Create(k8sevent.CreateEvent{Object: Volume("v"), IsInInitialList: true}) || !madeOrRemoved.Create(k8sevent.CreateEvent{Object: Volume("v")}) {
		t.Error("it passes other volumes than those that are made now")
	}
}

func TestAChangeWakesItsDriver(t *testing.T) {
	deps, _ := cluster(t)
	own, theirs := &storagev1.CSIStorageCapacity{}, &storagev1.CSIStorageCapacity{}
	own.Labels = map[string]string(ofDriver(driver))
	theirs.Labels = map[string]string{DriverLabel: driver, ManagedByLabel: "external-provisioner"}
	for name, test := range map[string]struct {
		got  []reconcile.Request
		want string
	}{
		"a class":                     {driverOfClass(t.Context(), Class("c", driver, nil)), "/" + driver},
		"a class of no CSI driver":    {driverOfClass(t.Context(), Class("c", "kubernetes.io/no-provisioner", nil)), ""},
		"a CSIDriver":                 {driverNamed(t.Context(), &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}}), "/" + driver},
		"an object":                   {driverOfCapacity(t.Context(), own), "/" + driver},
		"an object of another":        {driverOfCapacity(t.Context(), theirs), ""},
		"a node, of which all may be": {driversOf(deps.Client)(t.Context(), Node("n")), "/" + driver + " /other.example.com"},
	} {
		var got []string
		for _, request := range test.got {
			got = append(got, request.String())
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s wakes %v", name, got)
		}
	}
}

func TestADriverHasAtMostSoManyObjectsAndItsBackendSaysSoOnce(t *testing.T) {
	deps, recorder := cluster(t)
	var topologies []map[string]string
	for zone := range MaxObjects/2 + 1 {
		topologies = append(topologies, map[string]string{"zone": fmt.Sprint(zone)})
	}
	r, object := New(deps), csiBackend(driver)
	for range 2 {
		if desired := r.desired(object, []string{"one", "two"}, topologies); len(desired) != MaxObjects {
			t.Errorf("there are %d", len(desired))
		}
	}
	if len(recorder.Events) != 1 || !strings.Contains(<-recorder.Events, "Warning CapacityNotPublished driver disk.example.com has more than 5000 pairs") {
		t.Errorf("there are %d events", len(recorder.Events))
	}
	if desired := r.desired(object, []string{"one"}, topologies); len(desired) != len(topologies) || len(recorder.Events) != 0 {
		t.Errorf("there are %d", len(desired))
	}
}

func TestObjectsAreRefreshedAtTimesOfTheirOwn(t *testing.T) {
	times := map[string]bool{}
	for zone := range 100 {
		after := refreshAfter(nameOf(driver, "c", map[string]string{"zone": fmt.Sprint(zone)}))
		if after < RefreshInterval || after >= RefreshInterval+jitter {
			t.Errorf("it is refreshed after %s", after)
		}
		times[after.String()] = true
	}
	if len(times) < 90 {
		t.Errorf("there are %d times for 100 objects", len(times))
	}
}

func TestObjectsAreRefreshedAtTimesThatSpreadOverTheJitter(t *testing.T) {
	least, most := RefreshInterval+jitter, time.Duration(0)
	for i := range 1000 {
		after := refreshAfter(fmt.Sprintf("csisc-%d", i))
		least, most = min(least, after), max(most, after)
	}
	if least < RefreshInterval || least > RefreshInterval+jitter/10 || most >= RefreshInterval+jitter || most < RefreshInterval+jitter*9/10 {
		t.Errorf("they are refreshed after %s to %s", least, most)
	}
}
