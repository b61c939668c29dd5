package nfs

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/nfs/naming"
)

func TestAVolumeHasAllThatTheNodeNeeds(t *testing.T) {
	w := newWorld(t)
	w.spec.NFSVersion = "4.1"
	made := mustProvision(t, w.open(t), requestFor("team-a", "data", "1"))
	want := map[string]string{
		stowagev1alpha1.ServerAttribute:       w.spec.Server,
		stowagev1alpha1.PathAttribute:         "/exports/volumes/team-a-data-1",
		stowagev1alpha1.MountOptionsAttribute: w.open(t).spec.nodeOptions(),
	}
	for key, value := range want {
		if made.Attributes[key] != value {
			t.Errorf("%s is %q, not %q", key, made.Attributes[key], value)
		}
	}
	if !strings.HasPrefix(made.Attributes[stowagev1alpha1.MountOptionsAttribute], "nfsvers=4.1,port=") {
		t.Errorf("the mount options are %s", made.Attributes[stowagev1alpha1.MountOptionsAttribute])
	}
}

func TestADirectoryHasTheModeThatTheSpecSays(t *testing.T) {
	w := newWorld(t)
	mustProvision(t, w.open(t), requestFor("team-a", "data", "1"))
	info, err := os.Stat(filepath.Join(w.folder, "team-a-data-1"))
	must(t, err)
	if info.Mode().Perm() != 0o751 {
		t.Errorf("the mode is %s", info.Mode())
	}
}

func TestARecordNamesAVolumesOwner(t *testing.T) {
	w := newWorld(t)
	request := requestFor("team-a", "data", "1")
	mustProvision(t, w.open(t), request)
	data, err := os.ReadFile(filepath.Join(w.folder, recordPath(request.ID)))
	got := record{}
	must(t, err, json.Unmarshal(data, &got))
	want := record{Owner: backend.Owner{ID: request.ID, Cluster: string(thisCluster), Backend: "share", Claim: request.Claim}, Directory: "team-a-data-1"}
	if got != want {
		t.Errorf("it says %+v", got)
	}
}

func TestADirectoryThatAnotherProgramMadeIsNeverAVolume(t *testing.T) {
	w := newWorld(t)
	w.put(t, "team-a-data/photos", "of a cat")
	opened := w.open(t, template("{{namespace}}-{{name}}"))
	request := requestFor("team-a", "data", "1")

	_, err := opened.Provision(t.Context(), request)

	if !errors.Is(err, backend.Conflict) || !strings.Contains(err.Error(), "is no volume's of Stowage: look at it and move it away") {
		t.Errorf("provisioning ended with %v", err)
	}
	must(t, opened.Delete(t.Context(), request.ID))
	w.mustHave(t, "team-a-data/photos")
}

func TestNoTwoVolumesShareADirectory(t *testing.T) {
	const both = "{{namespace}}-{{name}}"
	for name, test := range map[string]struct {
		template, otherTemplate string
		request, otherRequest   backend.Request
	}{
		"names that run together": {both, both, requestFor("a-b", "c", "1"), requestFor("a", "b-c", "2")},
		"a claim made again":      {both, both, requestFor("a", "b", "1"), requestFor("a", "b", "2")},
		"one above the other":     {"x", "x/y/z", requestFor("a", "b", "1"), requestFor("a", "b", "2")},
		"one below the other":     {"x/y/z", "x", requestFor("a", "b", "1"), requestFor("a", "b", "2")},
	} {
		for doing, cluster := range map[string]types.UID{"in one cluster": thisCluster, "in two clusters": otherCluster} {
			t.Run(name+" "+doing, func(t *testing.T) {
				w := newWorld(t)
				opened := w.open(t, template(test.template))
				other := w.openAs(t, newKind(t, cluster, ""), template(test.otherTemplate))
				mustProvision(t, opened, test.request)

				_, err := other.Provision(t.Context(), test.otherRequest)

				if !errors.Is(err, backend.Conflict) || !strings.Contains(err.Error(), "the directory of another volume") || strings.Contains(err.Error(), "move it away") {
					t.Errorf("the second one ended with %v", err)
				}
				w.mustLack(t, recordPath(test.otherRequest.ID))
				must(t, other.Delete(t.Context(), test.otherRequest.ID))
				w.mustHave(t, recordPath(test.request.ID), directoryOf(t, opened, test.request))
			})
		}
	}
}

func TestAFileInAVolumeIsNotToBeMovedAway(t *testing.T) {
	w := newWorld(t)
	mustProvision(t, w.open(t, template("x")), requestFor("a", "b", "1"))
	w.put(t, "x/y", "a tenant's file")
	_, err := w.open(t, template("x/y/z")).Provision(t.Context(), requestFor("a", "b", "2"))
	if !errors.Is(err, backend.Conflict) || !strings.Contains(err.Error(), "leave that in place") || strings.Contains(err.Error(), "move it away") {
		t.Errorf("provisioning ended with %v", err)
	}
}

func TestOfManyVolumesOneReservesADirectory(t *testing.T) {
	w := newWorld(t)
	var asking sync.WaitGroup
	got := make(chan string, 8)
	for i, uid := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		opened := w.openAs(t, newKind(t, thisCluster+"-"+thisCluster[:i], ""), template("{{namespace}}-{{name}}"))
		asking.Go(func() {
			_, err := opened.Provision(t.Context(), requestFor("a", "b", uid))
			if err == nil {
				got <- uid
			} else if !errors.Is(err, backend.Conflict) {
				t.Errorf("provisioning ended with %v", err)
			}
		})
	}
	asking.Wait()
	close(got)
	if len(got) != 1 {
		t.Errorf("%d claims got the directory", len(got))
	}
}

func TestNoVolumeIsMadeForAnUnknownCluster(t *testing.T) {
	object := &stowagev1alpha1.StorageBackend{Spec: stowagev1alpha1.StorageBackendSpec{NFS: &stowagev1alpha1.NFSBackend{Server: "s", Path: "/srv"}}}
	if _, err := newKind(t, "", "").Open(object); !errors.Is(err, backend.Unavailable) {
		t.Errorf("opening ended with %v", err)
	}
}

func TestADirectoryIsNotMadeBehindALink(t *testing.T) {
	w := newWorld(t)
	must(t, os.Symlink("../canary", filepath.Join(w.folder, "team-a")))
	_, err := w.open(t, template("{{namespace}}/{{name}}")).Provision(t.Context(), requestFor("team-a", "data", "1"))
	if !errors.Is(err, backend.Conflict) {
		t.Errorf("provisioning ended with %v", err)
	}
}

func TestAForeignRecordIsAConflict(t *testing.T) {
	w := newWorld(t)
	request := requestFor("team-a", "data", "1")
	mustProvision(t, w.open(t), request)
	other := w.openAs(t, newKind(t, otherCluster, ""))
	if _, err := other.Provision(t.Context(), request); !errors.Is(err, backend.Conflict) {
		t.Errorf("provisioning for another cluster ended with %v", err)
	}
	if err := other.Delete(t.Context(), request.ID); !errors.Is(err, backend.Conflict) {
		t.Errorf("deleting for another cluster ended with %v", err)
	}
	w.mustHave(t, "team-a-data-1")
}

func TestWhatCannotBeRefusedLaterIsRefusedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.server.Size.Store(1 << 30)
	opened := w.open(t, template("{{labels.team}}-{{uid}}"))
	for name, test := range map[string]struct {
		change func(*backend.Request)
		kind   backend.ErrorKind
	}{
		"nothing":                      {func(r *backend.Request) { r.Capacity = resource.Quantity{} }, backend.Invalid},
		"less than nothing":            {func(r *backend.Request) { r.Capacity = resource.MustParse("-1Gi") }, backend.Invalid},
		"more than the server has":     {func(r *backend.Request) { r.Capacity = resource.MustParse("2Ei") }, backend.Exhausted},
		"a label that isn't there":     {func(r *backend.Request) { r.Labels = nil }, backend.Invalid},
		"a label that leads out":       {func(r *backend.Request) { r.Labels = map[string]string{"team": "../../etc"} }, backend.Invalid},
		"an id that is another's":      {func(r *backend.Request) { r.ID = "pvc-2" }, backend.Conflict},
		"an id that is a path":         {func(r *backend.Request) { r.ID = "../../canary" }, backend.Conflict},
		"an id that goes on as a path": {func(r *backend.Request) { r.ID += "/../pvc-2" }, backend.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			request := labelled("1", "x")
			request.Labels["team"] = "a"
			test.change(&request)
			if _, err := opened.Provision(t.Context(), request); !errors.Is(err, test.kind) {
				t.Errorf("provisioning ended with %v", err)
			}
			if entries, err := os.ReadDir(w.folder); len(entries) > 0 || err != nil {
				t.Errorf("on the share there is %v, %v", entries, err)
			}
		})
	}
}

func TestALabelChangedAfterwardsMovesNothing(t *testing.T) {
	w := newWorld(t)
	opened := w.open(t, template("{{labels.path}}-{{uid}}"))
	first := mustProvision(t, opened, labelled("1", "a"))
	again := mustProvision(t, opened, labelled("1", "b"))
	if first.Attributes[stowagev1alpha1.PathAttribute] != again.Attributes[stowagev1alpha1.PathAttribute] {
		t.Errorf("the volume is at %v, then at %v", first.Attributes, again.Attributes)
	}
}

// labelled is a request by a claim with a label that the template can name.
func labelled(uid, value string) backend.Request {
	request := backendtest.Request(uid)
	request.Labels = map[string]string{"path": value}
	return request
}

func directoryOf(t *testing.T, opened *nfsBackend, request backend.Request) string {
	t.Helper()
	directory, err := naming.Directory(opened.spec.template, request)
	must(t, err)
	return directory
}

func TestAClaimCanRequireOnePodAlone(t *testing.T) {
	w := newWorld(t)
	request, opened := requestFor("shop", "data", "1"), w.open(t)
	request.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	must(t, opened.Capabilities().Check(request))
	mustProvision(t, opened, request)
}
