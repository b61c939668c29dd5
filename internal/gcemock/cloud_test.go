package gcemock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/stowage-dev/stowage/internal/gcemock"
)

const (
	project = "demo"
	zone    = "europe-west3-a"
	other   = "europe-west3-b"
	quick   = 4 * time.Millisecond
)

// cloud is a cloud that is served, and a client of it.
type cloud struct {
	*testing.T
	*compute.Service
	mock *gcemock.Server
	url  string
	// stop ends it, as its program's end does.
	stop func()
}

// options are those of a cloud in a folder of its own.
func options(t *testing.T) gcemock.Options {
	return gcemock.Options{Folder: t.TempDir(), Projects: []string{project}, Zones: []string{zone, other}, Latency: quick}
}

// open serves a cloud until the test ends, or stop is called.
func open(t *testing.T, options gcemock.Options, client ...option.ClientOption) *cloud {
	t.Helper()
	mock, err := gcemock.New(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(mock)
	c := &cloud{T: t, mock: mock, url: server.URL}
	stopped := false
	c.stop = func() {
		if stopped {
			return
		}
		stopped = true
		server.CloseClientConnections()
		if err := mock.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	}
	t.Cleanup(c.stop)
	c.Service, err = compute.NewService(t.Context(), append([]option.ClientOption{
		option.WithEndpoint(server.URL + "/compute/v1/"), option.WithoutAuthentication(),
	}, client...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// done waits for an operation, which must end well.
func (c *cloud) done(operation *compute.Operation, err error) *compute.Operation {
	c.Helper()
	ended := c.ended(operation, err)
	if ended.Error != nil {
		c.Fatalf("operation %s ended in error: %s", ended.OperationType, ended.Error.Errors[0].Message)
	}
	return ended
}

// ended waits for an operation, however it ends.
func (c *cloud) ended(operation *compute.Operation, err error) *compute.Operation {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	for err == nil && operation.Status != "DONE" {
		switch {
		case operation.Zone != "":
			operation, err = c.ZoneOperations.Wait(project, path.Base(operation.Zone), operation.Name).Context(ctx).Do()
		case operation.Region != "":
			operation, err = c.RegionOperations.Wait(project, path.Base(operation.Region), operation.Name).Context(ctx).Do()
		default:
			operation, err = c.GlobalOperations.Wait(project, operation.Name).Context(ctx).Do()
		}
	}
	if err != nil {
		c.Fatal(err)
	}
	return operation
}

// refused checks that a call was refused with a status and a reason.
func (c *cloud) refused(err error, status int, reason string) {
	c.Helper()
	var refusal *googleapi.Error
	switch {
	case !errors.As(err, &refusal):
		c.Fatalf("got %v, not an error of the API", err)
	case refusal.Code != status || len(refusal.Errors) != 1 || refusal.Errors[0].Reason != reason:
		c.Fatalf("got %d %+v, want %d %s", refusal.Code, refusal.Errors, status, reason)
	case refusal.Errors[0].Message != refusal.Message || refusal.Message == "":
		c.Fatalf("the error says %q and %q", refusal.Message, refusal.Errors[0].Message)
	}
}

func (c *cloud) makeDisk(name string) *compute.Disk {
	c.Helper()
	c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: name, SizeGb: 10}).Do())
	return c.disk(name)
}

func (c *cloud) disk(name string) *compute.Disk {
	c.Helper()
	disk, err := c.Disks.Get(project, zone, name).Do()
	if err != nil {
		c.Fatal(err)
	}
	return disk
}

func (c *cloud) makeInstance(name string) {
	c.Helper()
	if err := c.mock.EnsureInstance(project, zone, name, "e2-standard-2"); err != nil {
		c.Fatal(err)
	}
}

func (c *cloud) instance(name string) *compute.Instance {
	c.Helper()
	instance, err := c.Instances.Get(project, zone, name).Do()
	if err != nil {
		c.Fatal(err)
	}
	return instance
}

func diskLink(name string) string { return "projects/" + project + "/zones/" + zone + "/disks/" + name }

// attach asks for a disk to be attached, under its own name.
func (c *cloud) attach(instance, disk, mode string) *compute.InstancesAttachDiskCall {
	return c.Instances.AttachDisk(project, zone, instance, &compute.AttachedDisk{
		Source: diskLink(disk), DeviceName: disk, Mode: mode,
	})
}

func (c *cloud) detach(instance, device string) *compute.InstancesDetachDiskCall {
	return c.Instances.DetachDisk(project, zone, instance, device)
}

func (c *cloud) inject(fault gcemock.Fault) {
	c.Helper()
	if err := c.mock.Inject(fault); err != nil {
		c.Fatal(err)
	}
}

// removeFaults takes all faults away, as an administrator does.
func (c *cloud) removeFaults() {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), http.MethodDelete, c.url+"/_mock/faults", http.NoBody)
	if err != nil {
		c.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.Fatalf("removing faults: %v %v", answer, err)
	}
	answer.Body.Close()
}
