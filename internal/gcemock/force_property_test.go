package gcemock_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
)

func TestConcurrentClientsWithForceNeverMakeTwoWriters(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	set, wired := failoverOptions(t)
	set.Latency = time.Millisecond
	c := openFailoverWith(t, set)
	wired.fails = 0.05
	c.inject(fault.Fault{Method: "instances.*", Rate: 0.05, Operation: "INTERNAL_ERROR"})
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() { c.failOverAtRandom(rand.New(rand.NewPCG(seed, uint64(i))), 40) })
	}
	clients.Wait()
	c.removeFaults()
	c.allEndIn(zone, other)
	wired.fails = 0
	if users := c.usersOf(); len(users) > 1 {
		t.Errorf("it is used by %v", users)
	}
	var devices []string
	for name, zone := range zoneOf {
		c.done(c.Instances.Stop(project, zone, name).Do())
		c.done(c.Instances.Start(project, zone, name).Do())
	}
	for _, user := range c.usersOf() {
		devices = append(devices, user+"/data")
	}
	wired.has(devices...)
}

// failOverAtRandom makes calls about regional disk data, of which many are refused.
func (c *cloud) failOverAtRandom(random *rand.Rand, calls int) {
	for range calls {
		name := []string{"left", "right", "beside"}[random.IntN(3)]
		var operation *compute.Operation
		var err error
		switch random.IntN(8) {
		case 0:
			operation, err = c.Instances.Stop(project, zoneOf[name], name).Do()
		case 1:
			operation, err = c.Instances.Start(project, zoneOf[name], name).Do()
		case 2:
			operation, err = c.attachRegional(name, "READ_WRITE", false)
		case 3:
			operation, err = c.Instances.DetachDisk(project, zoneOf[name], name, "data").Do()
		case 4:
			operation, err = c.Instances.SetDiskAutoDelete(project, zoneOf[name], name, true, "data").Do()
		default:
			operation, err = c.attachRegional(name, "READ_WRITE", true)
		}
		if err == nil && random.IntN(3) > 0 {
			c.ended(operation, err)
		}
	}
}

// allEndIn waits until no operation is under way in some zones.
func (c *cloud) allEndIn(zones ...string) {
	c.Helper()
	list, err := c.GlobalOperations.AggregatedList(project).Do()
	if err != nil {
		c.Fatal(err)
	}
	for _, zone := range zones {
		for _, operation := range list.Items["zones/"+zone].Operations {
			c.ended(operation, nil)
		}
	}
}
