package performance_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/performance"
)

func of(name, value string) backend.Attributes {
	return backend.Attributes{Class: "gold", Parameters: map[string]string{name: value}}
}

func TestAClassHasTheParametersOfGooglesDriver(t *testing.T) {
	for _, class := range []struct {
		name, value string
		want        performance.Performance
	}{
		{"iops", "5000", performance.Performance{IOPS: 5000}},
		{"IOPS", "5000", performance.Performance{IOPS: 5000}},
		{"throughput", "0.5Gi", performance.Performance{Throughput: 512}},
		{"throughput", "250Mi", performance.Performance{Throughput: 250}},
		{"throughput", "250M", performance.Performance{Throughput: 239}},
		{"throughput", "1Gi", performance.Performance{Throughput: 1024}},
		{"throughput", "1048577", performance.Performance{Throughput: 2}},
	} {
		if got, err := performance.Of(of(class.name, class.value)); got != class.want || err != nil {
			t.Errorf("%s %s is %+v, %v", class.name, class.value, got, err)
		}
	}
}

func TestAClassThatIsNoneOfADiskIsRefusedInFewWords(t *testing.T) {
	for _, class := range [][2]string{
		{"iops", ""},
		{"iops", "0"},
		{"iops", "-1"},
		{"iops", "5k"},
		{"iops", "99999999999999999999"},

		{"throughput", ""},
		{"throughput", "250"},
		{"throughput", "-1Gi"},
		{"throughput", "1e-999999999"},
		{"throughput", "1000000000000000000e900000000"},
		{"throughput", "0e2147483647"},
		{"throughput", "1e9"},
		{"type", "pd-ssd"},
		{strings.Repeat("x", 1<<15), ""},
		{"iops", strings.Repeat("9", 1<<15)},
	} {
		_, err := performance.Of(of(class[0], class[1]))
		if !errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), "VolumeAttributesClass gold") || len(err.Error()) > 300 {
			t.Errorf("%.50s %.50s is answered by %.400v", class[0], class[1], err)
		}
	}
}

func TestOnlyWhatADiskHasNotIsChanged(t *testing.T) {
	disk := &compute.Disk{Name: "pvc-1", ProvisionedIops: 3000, ProvisionedThroughput: 140}
	for want, wanted := range map[string]performance.Performance{
		"": {}, "provisionedIops": {IOPS: 4000}, "provisionedThroughput": {IOPS: 3000, Throughput: 150},
		"provisionedIops,provisionedThroughput": {IOPS: 4000, Throughput: 150},
	} {
		if request, fields := wanted.Update(disk); strings.Join(fields, ",") != want || request.Name != disk.Name {
			t.Errorf("%s changes %v", wanted, fields)
		}
	}
	if none, _ := (performance.Performance{IOPS: 3000, Throughput: 140}).Update(disk); none.ProvisionedIops+none.ProvisionedThroughput != 0 {
		t.Errorf("the request has %+v", none)
	}
}
