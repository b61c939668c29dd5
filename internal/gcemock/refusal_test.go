package gcemock_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
)

func TestBadRequestsAreRefusedAsGoogleDoes(t *testing.T) {
	c := open(t, options(t))
	c.makeInstance("node")
	c.makeInstance("second")
	for _, name := range []string{"used", "free"} {
		c.makeDisk(name)
	}
	c.done(c.attach("node", "used", "READ_WRITE").Do())
	c.done(c.Disks.CreateSnapshot(project, zone, "free", &compute.Snapshot{Name: "copy"}).Do())
	insert := func(disk compute.Disk) func() error {
		return func() error { _, err := c.Disks.Insert(project, zone, &disk).Do(); return err }
	}
	attach := func(instance string, requested compute.AttachedDisk) func() error {
		return func() error { _, err := c.Instances.AttachDisk(project, zone, instance, &requested).Do(); return err }
	}
	manyLabels := map[string]string{}
	for i := range 65 {
		manyLabels[fmt.Sprintf("key-%d", i)] = ""
	}
	cases := map[string]struct {
		call   func() error
		status int
		reason string
	}{
		"an unknown project":           {func() error { _, err := c.Disks.List("other", zone).Do(); return err }, http.StatusNotFound, "notFound"},
		"an unknown zone":              {func() error { _, err := c.Disks.List(project, "mars-a").Do(); return err }, http.StatusBadRequest, "invalid"},
		"an unknown disk":              {func() error { _, err := c.Disks.Get(project, zone, "none").Do(); return err }, http.StatusNotFound, "notFound"},
		"an unknown instance":          {func() error { _, err := c.Instances.Get(project, zone, "none").Do(); return err }, http.StatusNotFound, "notFound"},
		"an unknown operation":         {func() error { _, err := c.ZoneOperations.Get(project, zone, "none").Do(); return err }, http.StatusNotFound, "notFound"},
		"a name in capitals":           {insert(compute.Disk{Name: "Data", SizeGb: 10}), http.StatusBadRequest, "invalid"},
		"a name that is too long":      {insert(compute.Disk{Name: strings.Repeat("a", 64), SizeGb: 10}), http.StatusBadRequest, "invalid"},
		"a name that is taken":         {insert(compute.Disk{Name: "free", SizeGb: 10}), http.StatusConflict, "alreadyExists"},
		"a type that isn't there":      {insert(compute.Disk{Name: "a", SizeGb: 10, Type: "zones/" + zone + "/diskTypes/pd-fast"}), http.StatusBadRequest, "invalid"},
		"a type of another zone":       {insert(compute.Disk{Name: "a", SizeGb: 10, Type: "zones/" + other + "/diskTypes/pd-ssd"}), http.StatusBadRequest, "invalid"},
		"a size that is too small":     {insert(compute.Disk{Name: "a", SizeGb: 9}), http.StatusBadRequest, "invalid"},
		"a size that is too large":     {insert(compute.Disk{Name: "a", SizeGb: 65537}), http.StatusBadRequest, "invalid"},
		"iops for a type without":      {insert(compute.Disk{Name: "a", SizeGb: 10, ProvisionedIops: 5000}), http.StatusBadRequest, "invalid"},
		"a label in capitals":          {insert(compute.Disk{Name: "a", SizeGb: 10, Labels: map[string]string{"Team": "x"}}), http.StatusBadRequest, "invalid"},
		"too many labels":              {insert(compute.Disk{Name: "a", SizeGb: 10, Labels: manyLabels}), http.StatusBadRequest, "invalid"},
		"a source that can't be":       {insert(compute.Disk{Name: "a", SizeGb: 10, SourceImage: "global/images/debian"}), http.StatusBadRequest, "invalid"},
		"a disk that writes elsewhere": {attach("second", compute.AttachedDisk{Source: diskLink("used")}), http.StatusBadRequest, "resourceInUseByAnotherResource"},
		"a reader of what is written":  {attach("second", compute.AttachedDisk{Source: diskLink("used"), Mode: "READ_ONLY"}), http.StatusBadRequest, "resourceInUseByAnotherResource"},
		"a disk that is attached here": {attach("node", compute.AttachedDisk{Source: diskLink("used")}), http.StatusBadRequest, "resourceInUseByAnotherResource"},
		"a device name that is taken":  {attach("node", compute.AttachedDisk{Source: diskLink("free"), DeviceName: "used"}), http.StatusBadRequest, "invalid"},
		"a device name with a slash":   {attach("node", compute.AttachedDisk{Source: diskLink("free"), DeviceName: "../a"}), http.StatusBadRequest, "invalid"},
		"a disk of another zone":       {attach("node", compute.AttachedDisk{Source: "zones/" + other + "/disks/free"}), http.StatusBadRequest, "invalid"},
		"a disk that isn't there":      {attach("node", compute.AttachedDisk{Source: diskLink("none")}), http.StatusNotFound, "notFound"},
		"an instance that isn't there": {attach("none", compute.AttachedDisk{Source: diskLink("free")}), http.StatusNotFound, "notFound"},
		"a disk that is used": {
			func() error { _, err := c.Disks.Delete(project, zone, "used").Do(); return err }, http.StatusBadRequest, "resourceInUseByAnotherResource",
		},
		"a device that isn't there": {func() error { _, err := c.detach("node", "free").Do(); return err }, http.StatusBadRequest, "invalid"},
		"a size that is smaller": {
			func() error {
				_, err := c.Disks.Resize(project, zone, "free", &compute.DisksResizeRequest{SizeGb: 10}).Do()
				return err
			}, http.StatusBadRequest, "invalid",
		},
		"labels on top of others": {
			func() error {
				_, err := c.Disks.SetLabels(project, zone, "free", &compute.ZoneSetLabelsRequest{LabelFingerprint: "b2xk"}).Do()
				return err
			}, http.StatusPreconditionFailed, "conditionNotMet",
		},
		"labels of a snapshot on top of others": {
			func() error {
				_, err := c.Snapshots.SetLabels(project, "copy", &compute.GlobalSetLabelsRequest{LabelFingerprint: "b2xk"}).Do()
				return err
			}, http.StatusPreconditionFailed, "conditionNotMet",
		},
		"labels of a snapshot that isn't there": {
			func() error {
				_, err := c.Snapshots.SetLabels(project, "none", &compute.GlobalSetLabelsRequest{}).Do()
				return err
			}, http.StatusNotFound, "notFound",
		},
		"a filter that is broken": {
			func() error { _, err := c.Disks.List(project, zone).Filter("name =").Do(); return err }, http.StatusBadRequest, "invalid",
		},
		"a page that is too large": {
			func() error { _, err := c.Disks.List(project, zone).MaxResults(501).Do(); return err }, http.StatusBadRequest, "invalid",
		},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			here := *c
			here.T = t
			here.refused(cases[name].call(), cases[name].status, cases[name].reason)
		})
	}
}

func TestADisksQuotaIsKept(t *testing.T) {
	limited := options(t)
	limited.QuotaGb = 25
	c := open(t, limited)
	c.makeDisk("first")
	c.makeDisk("second")
	_, err := c.Disks.Insert(project, other, &compute.Disk{Name: "third", SizeGb: 10}).Do()
	c.refused(err, http.StatusForbidden, "quotaExceeded")
	_, err = c.Disks.Resize(project, zone, "first", &compute.DisksResizeRequest{SizeGb: 16}).Do()
	c.refused(err, http.StatusForbidden, "quotaExceeded")
	region, err := c.Regions.Get(project, "europe-west3").Do()
	if err != nil || region.Quotas[0].Usage != 20 || region.Quotas[0].Limit != 25 {
		t.Errorf("the region says %+v %v", region, err)
	}
}

func TestAnInstanceHasAsManyDisksAsItsTypeAllows(t *testing.T) {
	c := open(t, options(t))
	if err := c.mock.EnsureInstance(project, zone, "small", "e2-micro"); err != nil {
		t.Fatal(err)
	}
	for i := range 17 {
		name := fmt.Sprintf("disk-%d", i)
		c.makeDisk(name)
		operation, err := c.attach("small", name, "READ_WRITE").Do()
		if i == 16 {
			c.refused(err, http.StatusForbidden, "limitExceeded")
			continue
		}
		c.done(operation, err)
	}
}

func TestOnlyCallsWithTheTokenAreServed(t *testing.T) {
	guarded := options(t)
	guarded.Token = "right"
	c := open(t, guarded)
	_, err := c.Disks.List(project, zone).Do()
	c.refused(err, http.StatusUnauthorized, "authError")

	call := c.Disks.List(project, zone)
	call.Header().Set("Authorization", "Bearer right")
	if _, err := call.Do(); err != nil {
		t.Error(err)
	}
	answer, err := http.Get(c.url + "/_mock/faults")
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("faults are shown to strangers: %v %v", answer, err)
	}
	answer.Body.Close()
}

func TestAServiceAccountsKeyIsGoodForTheEndpoint(t *testing.T) {
	c := open(t, options(t))
	service, err := compute.NewService(t.Context(), option.WithEndpoint(c.url+"/compute/v1/"),
		option.WithAuthCredentialsJSON(option.ServiceAccount, serviceAccountKey(t, c.url+"/token")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.Disks.List(project, zone).Do(); err != nil {
		t.Error(err)
	}
}
