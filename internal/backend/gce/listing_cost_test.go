package gce

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
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
