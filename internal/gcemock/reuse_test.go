package gcemock_test

import (
	"testing"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
)

// again is a cloud in which an operation on disk data or instance node is stuck, until
// both were deleted and others have their names.
func again(t *testing.T, method string, begin func(*cloud) (*compute.Operation, error)) (*cloud, *compute.Operation) {
	t.Helper()
	c := open(t, options(t))
	c.makeInstance("node")
	c.makeDisk("data")
	c.inject(fault.Fault{Method: method, Count: 1, Stuck: true})
	stuck, err := begin(c)
	if err != nil {
		t.Fatal(err)
	}
	c.done(c.Instances.Delete(project, zone, "node").Do())
	c.done(c.Disks.Delete(project, zone, "data").Do())
	c.makeInstance("node")
	c.makeDisk("data")
	c.removeFaults()
	ended := c.ended(stuck, nil)
	return c, ended
}

func TestAnOperationIsOnTheResourceThatHadTheNameAtItsStart(t *testing.T) {
	for method, begin := range map[string]func(*cloud) (*compute.Operation, error){
		"disks.resize": func(c *cloud) (*compute.Operation, error) {
			return c.Disks.Resize(project, zone, "data", &compute.DisksResizeRequest{SizeGb: 20}).Do()
		},
		"disks.setLabels": func(c *cloud) (*compute.Operation, error) {
			return c.Disks.SetLabels(project, zone, "data", &compute.ZoneSetLabelsRequest{
				Labels: map[string]string{"a": "b"}, LabelFingerprint: c.disk("data").LabelFingerprint,
			}).Do()
		},
		"disks.delete": func(c *cloud) (*compute.Operation, error) { return c.Disks.Delete(project, zone, "data").Do() },
		"disks.createSnapshot": func(c *cloud) (*compute.Operation, error) {
			return c.Disks.CreateSnapshot(project, zone, "data", &compute.Snapshot{Name: "copy"}).Do()
		},
		"instances.attachDisk": func(c *cloud) (*compute.Operation, error) { return c.attach("node", "data", "READ_WRITE").Do() },
		"instances.stop":       func(c *cloud) (*compute.Operation, error) { return c.Instances.Stop(project, zone, "node").Do() },
		"instances.delete":     func(c *cloud) (*compute.Operation, error) { return c.Instances.Delete(project, zone, "node").Do() },
	} {
		t.Run(method, func(t *testing.T) {
			c, ended := again(t, method, begin)
			if ended.Error == nil || ended.Error.Errors[0].Code != "RESOURCE_NOT_FOUND" {
				t.Errorf("it ended as %+v", ended.Error)
			}
			if disk := c.disk("data"); disk.SizeGb != 10 || len(disk.Labels) != 0 || len(disk.Users) != 0 || disk.Status != "READY" {
				t.Errorf("the new disk is %+v", disk)
			}
			if instance := c.instance("node"); instance.Status != "RUNNING" || len(instance.Disks) != 0 {
				t.Errorf("the new instance is %+v", instance)
			}
		})
	}
}

func TestADetachIsOfTheDiskThatWasAttachedAtItsStart(t *testing.T) {
	c := open(t, options(t))
	c.makeInstance("node")
	c.makeDisk("data")
	c.done(c.attach("node", "data", "READ_WRITE").Do())
	c.inject(fault.Fault{Method: "instances.detachDisk", Count: 1, Stuck: true})
	stuck, err := c.detach("node", "data").Do()
	if err != nil {
		t.Fatal(err)
	}
	c.done(c.detach("node", "data").Do())
	c.done(c.Disks.Delete(project, zone, "data").Do())
	c.makeDisk("data")
	c.done(c.attach("node", "data", "READ_WRITE").Do())
	c.removeFaults()

	if ended := c.ended(stuck, nil); ended.Error == nil {
		t.Error("it ended well")
	}
	if users := c.disk("data").Users; len(users) != 1 {
		t.Errorf("the new disk is used by %v", users)
	}
}

func TestAResetOfAnInstanceThatWasStoppedBeforeItRanDoesNotStartIt(t *testing.T) {
	c, wired := openWired(t)
	c.makeInstance("node")
	c.makeDisk("data")
	c.done(c.attach("node", "data", "READ_WRITE").Do())
	c.inject(fault.Fault{Method: "instances.reset", Count: 1, Stuck: true})
	stuck, err := c.Instances.Reset(project, zone, "node").Do()
	if err != nil {
		t.Fatal(err)
	}
	c.done(c.Instances.Stop(project, zone, "node").Do())
	c.removeFaults()

	if ended := c.ended(stuck, nil); ended.Error == nil || c.instance("node").Status != "TERMINATED" {
		t.Errorf("it ended as %+v, and the instance is %s", ended.Error, c.instance("node").Status)
	}
	wired.has()
}

func TestADiskThatGoesWithItsInstanceStaysWhileAnotherReadsIt(t *testing.T) {
	c := open(t, options(t))
	c.makeInstance("reader")
	c.makeDisk("data")
	c.done(c.attach("reader", "data", "READ_ONLY").Do())
	c.done(c.Instances.Insert(project, zone, &compute.Instance{
		Name: "owner", Disks: []*compute.AttachedDisk{{Source: diskLink("data"), Mode: "READ_ONLY", AutoDelete: true}},
	}).Do())

	c.done(c.Instances.Delete(project, zone, "owner").Do())

	if users := c.disk("data").Users; len(users) != 1 {
		t.Errorf("the disk is used by %v", users)
	}
	c.checkInvariants()
}

func TestADiskThatGoesWithItsInstanceWhileItGrowsIsNotBroughtBack(t *testing.T) {
	c, wired := openWired(t)
	c.makeDisk("data")
	c.done(c.Instances.Insert(project, zone, &compute.Instance{
		Name: "owner", Disks: []*compute.AttachedDisk{{Source: diskLink("data"), AutoDelete: true}},
	}).Do())
	held, release := wired.hold()
	growing, err := c.Disks.Resize(project, zone, "data", &compute.DisksResizeRequest{SizeGb: 20}).Do()
	if err != nil {
		t.Fatal(err)
	}
	<-held
	c.done(c.Instances.Delete(project, zone, "owner").Do())
	release()
	c.ended(growing, nil)
	if list, err := c.Disks.List(project, zone).Do(); err != nil || len(list.Items) != 0 {
		t.Errorf("there are %+v %v", list, err)
	}
}
