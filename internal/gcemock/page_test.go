package gcemock_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/api/compute/v1"
)

func TestPagesMakeUpTheWholeWhateverComesAndGoes(t *testing.T) {
	c := open(t, options(t))
	for i := range 7 {
		c.makeDisk(fmt.Sprintf("disk-%d", i))
	}
	var names []string
	err := c.Disks.List(project, zone).MaxResults(3).Pages(t.Context(), func(page *compute.DiskList) error {
		if len(page.Items) > 3 {
			t.Errorf("a page has %d disks", len(page.Items))
		}
		for _, disk := range page.Items {
			names = append(names, disk.Name)
		}
		if len(names) == 3 {
			// The one that the token names goes, and one appears where it was read already.
			c.done(c.Disks.Delete(project, zone, "disk-2").Do())
			c.makeDisk("disk-00")
		}
		return nil
	})
	want := []string{"disk-0", "disk-1", "disk-2", "disk-3", "disk-4", "disk-5", "disk-6"}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("read %v %v, want %v", names, err, want)
	}
}

func TestFiltersHoldForWholeListsNotForPages(t *testing.T) {
	c := open(t, options(t))
	for i := range 6 {
		c.done(c.Disks.Insert(project, zone, &compute.Disk{
			Name: fmt.Sprintf("disk-%d", i), SizeGb: 10, Labels: map[string]string{"even": fmt.Sprint(i%2 == 0)},
		}).Do())
	}
	list, err := c.Disks.List(project, zone).Filter("labels.even=true").MaxResults(2).Do()
	if err != nil || len(list.Items) != 2 || list.Items[1].Name != "disk-2" || list.NextPageToken == "" {
		t.Fatalf("the first page is %+v %v", list, err)
	}
	rest, err := c.Disks.List(project, zone).Filter("labels.even=true").MaxResults(2).PageToken(list.NextPageToken).Do()
	if err != nil || len(rest.Items) != 1 || rest.Items[0].Name != "disk-4" || rest.NextPageToken != "" {
		t.Errorf("the second page is %+v %v", rest, err)
	}
}

func TestTheNewestComeFirstIfTheOrderSaysSo(t *testing.T) {
	c := open(t, options(t))
	for _, name := range []string{"b", "c", "a"} {
		c.makeDisk(name)
	}
	list, err := c.Disks.List(project, zone).OrderBy("creationTimestamp desc").Do()
	if err != nil || list.Items[0].Name != "a" || list.Items[2].Name != "b" {
		t.Errorf("got %+v %v", list, err)
	}
}

func TestAggregatedListsNameEveryZone(t *testing.T) {
	c := open(t, options(t))
	c.makeDisk("data")
	list, err := c.Disks.AggregatedList(project).Do()
	if err != nil {
		t.Fatal(err)
	}
	if here := list.Items["zones/"+zone]; len(here.Disks) != 1 || here.Warning != nil {
		t.Errorf("the zone with the disk has %+v", here)
	}
	if there := list.Items["zones/"+other]; len(there.Disks) != 0 || there.Warning.Code != "NO_RESULTS_ON_PAGE" {
		t.Errorf("the other zone has %+v", there)
	}
}
