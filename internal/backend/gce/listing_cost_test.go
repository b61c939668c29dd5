package gce

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

func TestOnlyInstancesThatDisksNameAreListedAndOnlyTheirDisks(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.mustAttach(on, w.withDisk(on, "1"), node("node-1"), false)
	var mu sync.Mutex
	var asked []*url.URL
	w.plans(func(request *http.Request) fate {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(request.URL.Path, "/instances") {
			asked = append(asked, request.URL)
		}
		return served
	})

	attached, err := on.Attachments(t.Context())
	w.must(err)

	if len(attached) != 1 || len(asked) != 1 {
		t.Fatalf("it lists %v, by %v", attached, asked)
	}
	query := asked[0].Query()
	if !strings.HasSuffix(asked[0].Path, "/zones/"+zoneA+"/instances") || query.Get("filter") != `(name = "node-1")` {
		t.Errorf("it requests %s", asked[0])
	}
	if fields := query.Get("fields"); !strings.Contains(fields, "disks(") || strings.Contains(fields, "metadata") {
		t.Errorf("it asks for the fields %q", fields)
	}
}

func TestADiskForOneMachineIsNotOfferedToMany(t *testing.T) {
	w := newWorld(t)
	for diskType, can := range map[string]bool{"": true, "pd-ssd": true, "hyperdisk-balanced": false, "hyperdisk-extreme": false} {
		on := w.open(func(spec *stowagev1alpha1.GCEBackend) { spec.DiskType = diskType })
		request := backendtest.Request("1")
		request.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}
		if err := on.Capabilities().Check(request); (err == nil) != can {
			t.Errorf("%q offers ReadOnlyMany: %v", diskType, err)
		}
	}
}
