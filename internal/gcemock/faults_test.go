package gcemock_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
)

func insertData(c *cloud) (*compute.Operation, error) {
	return c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10}).RequestId(firstRequest).Do()
}

func TestFaultsRefuseAsManyCallsAsTheyAreFor(t *testing.T) {
	c := open(t, options(t))
	// The client repeats calls that it may by itself, so the reads are not asked for here.
	c.inject(fault.Fault{Method: "disks.insert", Count: 1, Status: http.StatusTooManyRequests})
	c.inject(fault.Fault{Method: "disks.*", Count: 1, Status: http.StatusServiceUnavailable, RetryAfter: fault.Duration(1500 * time.Millisecond)})
	_, err := insertData(c)
	c.refused(err, http.StatusTooManyRequests, "rateLimitExceeded")
	_, err = insertData(c)
	c.refused(err, http.StatusServiceUnavailable, "backendError")
	var refusal *googleapi.Error
	if !errors.As(err, &refusal) || refusal.Header.Get("Retry-After") != "2" {
		t.Errorf("the refusal has the header %v", refusal.Header)
	}
	c.done(insertData(c))
}

func TestAnAnswerIsLostAndTheRepeatFindsItDone(t *testing.T) {
	c := open(t, options(t))
	c.inject(fault.Fault{Method: "disks.insert", Count: 1, Lost: true})
	if _, err := insertData(c); err == nil || errors.As(err, new(*googleapi.Error)) {
		t.Errorf("the client hears %v", err)
	}
	c.done(insertData(c))
	list, err := c.ZoneOperations.List(project, zone).Do()
	if err != nil || len(list.Items) != 1 {
		t.Errorf("operations: %+v %v", list, err)
	}
}

func TestAnOperationEndsInErrorAndChangesNothing(t *testing.T) {
	c := open(t, options(t))
	c.makeInstance("node")
	c.inject(fault.Fault{Method: "disks.insert", Count: 1, Operation: "QUOTA_EXCEEDED", Message: "no more"})
	ended := c.ended(insertData(c))
	if ended.Error == nil || ended.Error.Errors[0].Code != "QUOTA_EXCEEDED" || ended.Error.Errors[0].Message != "no more" {
		t.Errorf("it ended as %+v", ended.Error)
	}
	_, err := c.Disks.Get(project, zone, "data").Do()
	c.refused(err, http.StatusNotFound, "notFound")

	c.makeDisk("data")
	for _, method := range []string{"instances.attachDisk", "disks.delete", "disks.resize"} {
		c.inject(fault.Fault{Method: method, Count: 1, Operation: "INTERNAL_ERROR"})
	}
	c.ended(c.attach("node", "data", "READ_WRITE").Do())
	c.ended(c.Disks.Resize(project, zone, "data", &compute.DisksResizeRequest{SizeGb: 20}).Do())
	c.ended(c.Disks.Delete(project, zone, "data").Do())
	if disk := c.disk("data"); len(disk.Users) != 0 || disk.SizeGb != 10 || disk.Status != "READY" {
		t.Errorf("the disk is %+v", disk)
	}
	c.done(c.attach("node", "data", "READ_WRITE").Do())
}

func TestAStuckOperationGoesOnOnceTheFaultIsRemoved(t *testing.T) {
	c := open(t, options(t))
	c.inject(fault.Fault{Method: "disks.insert", Count: 1, Stuck: true})
	operation, err := insertData(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*quick)
	defer cancel()
	if waited, err := c.ZoneOperations.Wait(project, zone, operation.Name).Context(ctx).Do(); err == nil {
		t.Fatalf("it is %s", waited.Status)
	}
	if status := c.disk("data").Status; status != "CREATING" {
		t.Errorf("the disk is %s", status)
	}
	c.removeFaults()
	c.done(operation, nil)
}

func TestFaultsThatMakeNoSenseAreRefused(t *testing.T) {
	c := open(t, options(t))
	for _, text := range []string{
		`{"method":"disks.make","lost":true}`, `{"method":"disks.insert"}`, `{"method":"disks.insert","status":200}`,
		`{"method":"disks.insert","lost":true,"rate":2}`, `{"method":"disks.insert","gone":true}`, `{`, `{"lost":true}`,
	} {
		answer, err := http.Post(c.url+"/_mock/faults", "application/json", strings.NewReader(text))
		if err != nil || answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %v %v", text, answer, err)
			continue
		}
		answer.Body.Close()
	}
}

func TestLatencyIsSetWhileItRuns(t *testing.T) {
	c := open(t, options(t))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, c.url+"/_mock/latency",
		strings.NewReader(`{"operation":"150ms","answer":"30ms"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", answer, err)
	}
	answer.Body.Close()
	begun := time.Now()
	c.done(insertData(c))
	if took := time.Since(begun); took < 180*time.Millisecond {
		t.Errorf("it took %s", took)
	}
}
