package gcemock_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
)

func TestConcurrentClientsNeverBreakTheRules(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	set := options(t)
	set.Latency = time.Millisecond
	wired := newSockets(t)
	wired.fails = 0.05
	set.Attacher = wired
	c := open(t, set)
	for i := range 3 {
		c.makeInstance(fmt.Sprintf("node-%d", i))
	}
	c.inject(fault.Fault{Method: "*", Rate: 0.05, Operation: "INTERNAL_ERROR"})
	c.inject(fault.Fault{Method: "*", Rate: 0.05, Delay: fault.Duration(3 * time.Millisecond)})

	var clients sync.WaitGroup
	stop := make(chan struct{})
	for i := range 6 {
		clients.Go(func() { c.actAtRandom(rand.New(rand.NewPCG(seed, uint64(i))), 60) })
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			default:
				c.checkWriters()
			}
		}
	}()
	clients.Wait()
	close(stop)
	<-watched
	c.removeFaults()
	c.allEnd()
	c.checkInvariants()
	wired.fails = 0
	for i := range 3 {
		node := fmt.Sprintf("node-%d", i)
		c.done(c.Instances.Stop(project, zone, node).Do())
		c.done(c.Instances.Start(project, zone, node).Do())
	}
	wired.has(c.attached()...)
}

// attached are all devices that instances which run have, in order.
func (c *cloud) attached() []string {
	c.Helper()
	list, err := c.Instances.List(project, zone).Filter("status = RUNNING").Do()
	if err != nil {
		c.Fatal(err)
	}
	var devices []string
	for _, instance := range list.Items {
		for _, disk := range instance.Disks {
			devices = append(devices, instance.Name+"/"+disk.DeviceName)
		}
	}
	slices.Sort(devices)
	return devices
}

// actAtRandom makes calls, of which many are refused.
func (c *cloud) actAtRandom(random *rand.Rand, calls int) {
	for range calls {
		disk, node := fmt.Sprintf("disk-%d", random.IntN(4)), fmt.Sprintf("node-%d", random.IntN(3))
		var operation *compute.Operation
		var err error
		switch random.IntN(10) {
		case 0:
			operation, err = c.Disks.Insert(project, zone, &compute.Disk{Name: disk, SizeGb: 10}).Do()
		case 1:
			operation, err = c.Disks.Delete(project, zone, disk).Do()
		case 2:
			operation, err = c.Disks.Resize(project, zone, disk, &compute.DisksResizeRequest{SizeGb: 11 + random.Int64N(50)}).Do()
		case 3:
			operation, err = c.attach(node, disk, "READ_ONLY").Do()
		case 4, 5:
			operation, err = c.attach(node, disk, "READ_WRITE").Do()
		case 6:
			operation, err = c.Instances.Stop(project, zone, node).Do()
		case 7:
			operation, err = c.Instances.Start(project, zone, node).Do()
		default:
			operation, err = c.detach(node, disk).Do()
		}
		if err == nil && random.IntN(3) > 0 {
			c.ended(operation, err)
		}
	}
}

// checkWriters checks one moment: what a list says was true at once.
func (c *cloud) checkWriters() {
	list, err := c.Instances.List(project, zone).Do()
	if err != nil {
		c.Error(err)
		return
	}
	attached := map[string][]string{}
	for _, instance := range list.Items {
		for _, disk := range instance.Disks {
			attached[disk.Source] = append(attached[disk.Source], disk.Mode)
		}
	}
	for disk, modes := range attached {
		for _, mode := range modes {
			if mode == "READ_WRITE" && len(modes) > 1 {
				c.Errorf("%s is attached as %v", disk, modes)
			}
		}
	}
}
