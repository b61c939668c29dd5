package gcedriver_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

func TestStowageChangesTheAttributesOfADiskByTheDriver(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, "modify", subjects[2])
	opened, request := b.backend(t, inOneZone, "hyperdisk-balanced").Backend, backendtest.Request("1")
	request.Capacity = resource.MustParse("200Gi")
	made, err := opened.Provision(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []struct {
		iops, throughput string
		refusal          error
	}{
		{"5000", "200Mi", nil}, {"5000", "200Mi", nil}, {"900000000", "200Mi", backend.Invalid}, {"many", "200Mi", backend.Invalid},
	} {
		err := backend.Modify(t.Context(), opened, made.Handle, backend.Attributes{Class: "fast", Parameters: map[string]string{"iops": change.iops, "throughput": change.throughput}})
		if !errors.Is(err, change.refusal) {
			t.Errorf("with %s IOPS: %v", change.iops, err)
		}
		// The driver answers before the cloud has made the change.
		b.eventually("the disk has what could be changed", func() error {
			if disk := b.disks()[0]; disk.ProvisionedIops != 5000 || disk.ProvisionedThroughput != 200 {
				return fmt.Errorf("it has %d and %d", disk.ProvisionedIops, disk.ProvisionedThroughput)
			}
			return nil
		})
	}
	if err := opened.Delete(t.Context(), made.Handle); err != nil {
		t.Error(err)
	}
	b.leavesNothing()
}
