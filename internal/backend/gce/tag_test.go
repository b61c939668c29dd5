package gce

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

// tagsOf are those that were bound to a disk.
func (w *world) tagsOf(id string) map[string]string {
	w.Helper()
	var read struct {
		Tags map[string]map[string]string `json:"tags"`
	}
	w.must(json.Unmarshal(w.administer(http.MethodGet, "tags"), &read))
	return read.Tags[cloud.PathOf(w.mustHaveOne(id).SelfLink)]
}

func TestADiskHasTheTagsOfItsClass(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	want := map[string]string{"123456789/env": "prod", "shop-project/team": "shop"}
	parameters := map[string]string{"resource-tags": "123456789/env/prod, shop-project/team/shop"}
	w.mustProvision(on, ofClass("1", parameters))
	w.mustProvision(on, ofClass("2", nil))
	copied := copying("3")
	copied.Capacity, copied.Parameters = ofClass("3", nil).Capacity, parameters
	w.mustProvision(on, copied)

	for id, tags := range map[string]map[string]string{"pvc-1": want, "pvc-2": nil, "pvc-3": want} {
		if got := w.tagsOf(id); !maps.Equal(got, tags) {
			t.Errorf("disk %s has the tags %v", id, got)
		}
	}
}

func TestTagsThatTheAccountMayNotBindAreExplained(t *testing.T) {
	w := newWorld(t)
	w.inject(gcemock.Fault{Method: "disks.insert", Status: http.StatusForbidden, Reason: "forbidden", Message: "no tags for you"})
	_, err := w.provision(w.open(), ofClass("1", map[string]string{"resource-tags": "123/env/prod"}))
	w.mustBe(err, backend.Unavailable, "grant it the role resourcemanager.tagUser", "no tags for you")
	_, err = w.provision(w.open(), ofClass("1", nil))
	w.mustBe(err, backend.Unavailable, "grant the roles compute.instanceAdmin.v1")
	unwanted := ofClass("1", map[string]string{"resource-tags": "123/env/prod"})
	unwanted.Unwanted = true
	_, err = w.provision(w.open(), unwanted)
	w.mustBe(err, backend.Invalid, "disk pvc-1 was never made", "no tags for you")
	w.removeFaults()
	w.mustProvision(w.open(), ofClass("1", map[string]string{"resource-tags": "123/env/prod"}))
}
