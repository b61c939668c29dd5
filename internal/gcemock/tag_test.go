package gcemock_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"
)

// tags are those that the mock shows, by the path of their disk.
func (c *cloud) tags() map[string]map[string]string {
	c.Helper()
	status, answer := c.call(http.MethodGet, "/_mock/tags", "")
	var read struct {
		Tags map[string]map[string]string `json:"tags"`
	}
	if err := json.Unmarshal([]byte(answer), &read); err != nil || status != http.StatusOK {
		c.Fatalf("tags are answered with %d %s: %v", status, answer, err)
	}
	return read.Tags
}

func tagged(tags map[string]string) *compute.Disk {
	return &compute.Disk{Name: "data", SizeGb: 10, Params: &compute.DiskParams{ResourceManagerTags: tags}}
}

func TestTheTagsOfADiskAreKeptAndNeverAnsweredWithIt(t *testing.T) {
	set := options(t)
	c := open(t, set)
	want := map[string]string{"123456789/env": "prod", "shop-project/cost.center": "A (all) @ 7", "tagKeys/12": "tagValues/34"}
	c.done(c.Disks.Insert(project, zone, tagged(want)).Do())
	c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: "clone", SourceDisk: diskLink("data")}).Do())
	if disk := c.disk("data"); disk.Params != nil {
		t.Errorf("the disk is answered with %+v", disk.Params)
	}
	if list, err := c.Disks.List(project, zone).Do(); err != nil || list.Items[0].Params != nil || list.Items[1].Params != nil {
		t.Errorf("disks are listed with params: %v", err)
	}
	c.stop()

	c = open(t, set)
	if got := c.tags(); len(got) != 1 || !maps.Equal(got[diskLink("data")], want) {
		t.Errorf("the tags are %v", got)
	}
	c.done(c.Disks.Delete(project, zone, "data").Do())
	if got := c.tags(); len(got) != 0 {
		t.Errorf("after the disk, there are the tags %v", got)
	}
}

func TestATagThatCannotBeIsRefused(t *testing.T) {
	c := open(t, options(t))
	many := map[string]string{}
	for i := range 51 {
		many[fmt.Sprintf("123/key-%d", i)] = "v"
	}
	for name, tags := range map[string]map[string]string{
		"too many":                          many,
		"a key without its parent":          {"env": "prod"},
		"a number that begins with 0":       {"0123/env": "prod"},
		"a key of 64 letters":               {"123/" + strings.Repeat("k", 64): "prod"},
		"no value":                          {"123/env": ""},
		"a value with a slash":              {"123/env": "a/b"},
		"a numbered key, and a named value": {"tagKeys/12": "prod/"},
	} {
		t.Run(name, func(t *testing.T) {
			here := *c
			here.T = t
			_, err := c.Disks.Insert(project, zone, tagged(tags)).Do()
			here.refused(err, http.StatusBadRequest, "invalid")
		})
	}
}

func TestAStoragePoolShowsHowLargeItsDisksCanBe(t *testing.T) {
	c := open(t, options(t))
	for kind, most := range map[string]int64{"STANDARD": 10240, "ADVANCED": 51200} {
		name := strings.ToLower(kind)
		c.done(c.StoragePools.Insert(project, zone, &compute.StoragePool{
			Name: name, StoragePoolType: "zones/" + zone + "/storagePoolTypes/hyperdisk-balanced", PoolProvisionedCapacityGb: 10240, CapacityProvisioningType: kind,
		}).Do())
		pool, err := c.StoragePools.Get(project, zone, name).Do()
		if err != nil || pool.ResourceStatus.MaxTotalProvisionedDiskCapacityGb != most {
			t.Errorf("the pool is %+v: %v", pool, err)
		}
	}
}
