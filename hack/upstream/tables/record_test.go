//go:build tables

// Package persistentvolume is built from upstream's package of that name, whose files an
// overlay puts beside this one. Its tests record their tables instead of playing them:
// functions that upstream's own are renamed for stand in for its harness.
package persistentvolume

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	pvtesting "k8s.io/kubernetes/pkg/controller/volume/persistentvolume/testing"
)

// customTimeout ends a row's own code that waits for a controller, which does not run.
const customTimeout = 2 * time.Second

// row is one row of a table, as the player reads it.
type row struct {
	Test, Name string
	// Call is what the row calls: claim or volume, the first one's reconciler, or all.
	Call string
	// Compared is what the row says of its volumes: all, finalizers or annotations.
	Compared                string                      `json:",omitempty"`
	Classes                 []*storage.StorageClass     `json:",omitempty"`
	Pods                    []*v1.Pod                   `json:",omitempty"`
	Volumes, WantVolumes    []*v1.PersistentVolume      `json:",omitempty"`
	Claims, WantClaims      []*v1.PersistentVolumeClaim `json:",omitempty"`
	WantEvents              []string                    `json:",omitempty"`
	NewVolumes              []*v1.PersistentVolume      `json:",omitempty"`
	NewClaims               []*v1.PersistentVolumeClaim `json:",omitempty"`
	GoneVolumes, GoneClaims []string                    `json:",omitempty"`
	// Problem is why the row's own code could not be recorded.
	Problem string `json:",omitempty"`
}

// called is what the code of the row at hand called last.
var called string

func testSyncClaim(*PersistentVolumeController, *pvtesting.VolumeReactor, controllerTest) error {
	called = "claim"
	return nil
}

func testSyncClaimError(ctrl *PersistentVolumeController, reactor *pvtesting.VolumeReactor, test controllerTest) error {
	return testSyncClaim(ctrl, reactor, test)
}

func testSyncVolume(*PersistentVolumeController, *pvtesting.VolumeReactor, controllerTest) error {
	called = "volume"
	return nil
}

// wrapTestWithPluginCalls leaves the plug-in out: kube-controller-manager has none.
func wrapTestWithPluginCalls(_, _ []error, _ []provisionCall, wrapped testCall) testCall {
	return wrapped
}

func wrapTestWithCSIMigrationProvisionCalls(wrapped testCall) testCall { return wrapped }

// wrapTestWithInjectedOperation has what happens in the middle of upstream's call happen
// after it.
func wrapTestWithInjectedOperation(_ context.Context, wrapped testCall, inject func(*PersistentVolumeController, *pvtesting.VolumeReactor)) testCall {
	return func(ctrl *PersistentVolumeController, reactor *pvtesting.VolumeReactor, test controllerTest) error {
		err := wrapped(ctrl, reactor, test)
		inject(ctrl, reactor)
		return err
	}
}

func runSyncTests(t *testing.T, ctx context.Context, tests []controllerTest, classes []*storage.StorageClass, pods []*v1.Pod) {
	for _, test := range tests {
		recordRow(t, ctx, test, "", classes, pods)
	}
}

func runMultisyncTests(t *testing.T, ctx context.Context, tests []controllerTest, classes []*storage.StorageClass, _ string) {
	for _, test := range tests {
		recordRow(t, ctx, test, "all", classes, nil)
	}
}

// recordController is called by TestControllerSync.
func recordController(t *testing.T, ctx context.Context, test controllerTest) {
	immediate := storage.VolumeBindingImmediate
	class := makeStorageClass(classExternal, &immediate)
	class.Provisioner = "gcr.io/vendor-csi"
	recordRow(t, ctx, test, "all", []*storage.StorageClass{class}, nil)
}

// recordFinalizers is called by TestModifyDeletionFinalizers.
func recordFinalizers(t *testing.T, name string, pv *v1.PersistentVolume, want []string) {
	wanted := pv.DeepCopy()
	wanted.Finalizers = want
	write(t, row{
		Test: topOf(t), Name: name, Call: "volume", Compared: "finalizers",
		Volumes: []*v1.PersistentVolume{pv}, WantVolumes: []*v1.PersistentVolume{wanted},
	})
}

// recordAnnotations is called by TestAnnealMigrationAnnotations.
func recordAnnotations(t *testing.T, name string, ofVolume, wantVolume, ofClaim, wantClaim map[string]string) {
	volume := func(annotations map[string]string) []*v1.PersistentVolume {
		pv := newVolume("volume", "1Gi", "", "", v1.VolumeAvailable, v1.PersistentVolumeReclaimRetain, classEmpty)
		pv.Annotations = annotations
		return []*v1.PersistentVolume{pv.DeepCopy()}
	}
	claim := func(annotations map[string]string) []*v1.PersistentVolumeClaim {
		pvc := newClaim("claim", "uid", "10Gi", "", v1.ClaimPending, &classEmpty)
		pvc.Annotations = annotations
		return []*v1.PersistentVolumeClaim{pvc.DeepCopy()}
	}
	write(t, row{
		Test: topOf(t), Name: name, Call: "all", Compared: "annotations",
		Volumes: volume(ofVolume), WantVolumes: volume(wantVolume), Claims: claim(ofClaim), WantClaims: claim(wantClaim),
	})
}

func recordRow(t *testing.T, ctx context.Context, test controllerTest, call string, classes []*storage.StorageClass, pods []*v1.Pod) {
	made := row{Test: topOf(t), Name: test.name, Call: call, Classes: classes, Pods: pods, WantEvents: test.expectedEvents}
	client := &fake.Clientset{}
	ctrl, err := newTestController(ctx, client, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	claimEvents, volumeEvents := watch.NewFake(), watch.NewFake()
	reactor := newVolumeReactor(ctx, client, ctrl, volumeEvents, claimEvents, nil)
	for _, claim := range test.initialClaims {
		ctrl.claims.Add(claim)
	}
	for _, volume := range test.initialVolumes {
		ctrl.volumes.store.Add(volume)
	}
	reactor.AddClaims(test.initialClaims)
	reactor.AddVolumes(test.initialVolumes)

	for _, claim := range test.initialClaims {
		ctrl.operationTimestamps.AddIfNotExist(claimToClaimKey(claim), "recorded", "provision")
	}
	go followClaims(ctrl, claimEvents)
	go followVolumes(ctrl, volumeEvents)

	called = "all"
	made.Problem = runCode(func() error { return test.test(ctrl, reactor.VolumeReactor, test) })
	if call == "" {
		made.Call = called
	}
	made.Volumes, made.WantVolumes = test.initialVolumes, test.expectedVolumes
	made.Claims, made.WantClaims = test.initialClaims, test.expectedClaims
	made.compare(ctx, client)
	write(t, made)
}

// followClaims does what rows wait for when they delete a claim.
func followClaims(ctrl *PersistentVolumeController, events *watch.FakeWatcher) {
	for event := range events.ResultChan() {
		claim := event.Object.(*v1.PersistentVolumeClaim)
		if event.Type != watch.Deleted {
			continue
		}
		ctrl.operationTimestamps.Delete(claimToClaimKey(claim))
		if _, there, _ := ctrl.volumes.store.GetByKey(claim.Spec.VolumeName); there {
			ctrl.operationTimestamps.AddIfNotExist(claim.Spec.VolumeName, "recorded", "delete")
		}
		ctrl.claims.Delete(claim)
	}
}

// followVolumes does what rows wait for when they delete a volume.
func followVolumes(ctrl *PersistentVolumeController, events *watch.FakeWatcher) {
	for event := range events.ResultChan() {
		volume := event.Object.(*v1.PersistentVolume)
		if event.Type != watch.Deleted {
			continue
		}
		for _, object := range ctrl.claims.List() {
			if claim := object.(*v1.PersistentVolumeClaim).DeepCopy(); claim.Spec.VolumeName == volume.Name {
				claim.Status.Phase = v1.ClaimLost
				ctrl.claims.Update(claim)
			}
		}
		ctrl.volumes.store.Delete(volume)
	}
}

// runCode calls a row's code. It returns why that could not end.
func runCode(code func() error) string {
	ended := make(chan error, 1)
	go func() {
		defer func() {
			if problem := recover(); problem != nil {
				ended <- fmt.Errorf("%v", problem)
			}
		}()
		ended <- code()
	}()
	select {
	case err := <-ended:
		if err != nil {
			return err.Error()
		}
		return ""
	case <-time.After(customTimeout):
		return "it waits for upstream's controller"
	}
}

// compare notes what the row's code changed in the API server that upstream's harness
// plays.
func (r *row) compare(ctx context.Context, client *fake.Clientset) {
	claims, volumes := client.CoreV1().PersistentVolumeClaims(testNamespace), client.CoreV1().PersistentVolumes()
	known := map[string]bool{}
	for _, claim := range r.Claims {
		known[claim.Name] = true
		if _, err := claims.Get(ctx, claim.Name, metav1.GetOptions{}); err != nil {
			r.GoneClaims = append(r.GoneClaims, claim.Name)
		}
	}
	for _, want := range r.WantClaims {
		if claim, err := claims.Get(ctx, want.Name, metav1.GetOptions{}); err == nil && !known[want.Name] {
			r.NewClaims = append(r.NewClaims, claim)
		}
	}
	known = map[string]bool{}
	for _, volume := range r.Volumes {
		known[volume.Name] = true
		if _, err := volumes.Get(ctx, volume.Name, metav1.GetOptions{}); err != nil {
			r.GoneVolumes = append(r.GoneVolumes, volume.Name)
		}
	}
	for _, want := range r.WantVolumes {
		if volume, err := volumes.Get(ctx, want.Name, metav1.GetOptions{}); err == nil && !known[want.Name] {
			r.NewVolumes = append(r.NewVolumes, volume)
		}
	}
}

func topOf(t *testing.T) string {
	top, _, _ := strings.Cut(t.Name(), "/")
	return top
}

// write adds a row to the file that the variable names, a line each.
func write(t *testing.T, made row) {
	line, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(os.Getenv("STOWAGE_UPSTREAM_TABLES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}
