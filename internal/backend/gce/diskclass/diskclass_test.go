package diskclass

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/performance"
	"github.com/stowage-dev/stowage/internal/backend/gce/storagepool"
)

const key = "projects/example.com:keys/locations/europe-west3/keyRings/disks/cryptoKeys/Data_1"

func TestTheParametersOfAClassAreReadOrRefused(t *testing.T) {
	for name, test := range map[string]struct {
		parameters map[string]string
		want       Class
		problem    string
	}{
		"none":        {nil, Class{}, ""},
		"a type":      {map[string]string{"type": "pd-ssd"}, Class{Type: "pd-ssd"}, ""},
		"labels":      {map[string]string{"labels": "team=shop, tier=gold"}, Class{Labels: map[string]string{"team": "shop", "tier": "gold"}}, ""},
		"a key":       {map[string]string{"disk-encryption-kms-key": key}, Class{Key: key}, ""},
		"IOPS":        {map[string]string{"provisioned-iops-on-create": "5000"}, Class{Performance: performance.Performance{IOPS: 5000}}, ""},
		"replicas":    {map[string]string{"replication-type": "regional-pd"}, Class{Replicated: true}, ""},
		"no replicas": {map[string]string{"replication-type": "none"}, Class{}, ""},
		"throughput":  {map[string]string{"provisioned-throughput-on-create": "250Mi"}, Class{Performance: performance.Performance{Throughput: 250}}, ""},
		"pools":       {map[string]string{"storage-pools": "projects/p/zones/z/storagePools/fast"}, Class{Pools: storagepool.Pools{"z": {Project: "p", Zone: "z", Name: "fast"}}}, ""},
		"tags":        {map[string]string{"resource-tags": "123/env/prod"}, Class{Tags: map[string]string{"123/env": "prod"}}, ""},

		"each zone": {map[string]string{"enable-multi-zone-provisioning": "true"}, Class{InEachZone: true}, ""},
		"one zone":  {map[string]string{"enable-multi-zone-provisioning": "false"}, Class{}, ""},

		"a disk in each zone, with replicas": {map[string]string{"enable-multi-zone-provisioning": "true", "replication-type": "regional-pd"}, Class{}, "use a class with one of them"},
		"a type that is a path":              {map[string]string{"type": "../pd-ssd"}, Class{}, "name a type such as pd-ssd"},
		"no type":                            {map[string]string{"type": ""}, Class{}, "name a type such as pd-ssd"},
		"a label of Stowage's own":           {map[string]string{"labels": "stowage-cluster=x"}, Class{}, "keys that begin with stowage- are Stowage's own"},
		"a label of capitals":                {map[string]string{"labels": "Team=shop"}, Class{}, "write key=value"},
		"a key with a version":               {map[string]string{"disk-encryption-kms-key": key + "/cryptoKeyVersions/1"}, Class{}, "name a key of Cloud KMS without a version"},
		"a key that leads elsewhere":         {map[string]string{"disk-encryption-kms-key": "projects/p/locations/l/keyRings/../cryptoKeys/k"}, Class{}, "name a key of Cloud KMS"},
		"no number of IOPS":                  {map[string]string{"provisioned-iops-on-create": "many"}, Class{}, "write a number of IOPS such as 5000"},
		"fewer than no IOPS":                 {map[string]string{"provisioned-iops-on-create": "-1"}, Class{}, "write a number of IOPS such as 5000"},
		"throughput without its unit":        {map[string]string{"provisioned-throughput-on-create": "250"}, Class{}, "such as 250Mi"},
		"throughput beyond any number":       {map[string]string{"provisioned-throughput-on-create": "1e999999999"}, Class{}, "such as 250Mi"},
		"a replication of no kind":           {map[string]string{"replication-type": "everywhere"}, Class{}, "write regional-pd or none"},
		"what disks don't have":              {map[string]string{"enable-confidential-compute": "true"}, Class{}, `has the parameter "enable-confidential-compute"`},
		"a pool's name alone":                {map[string]string{"storage-pools": "fast"}, Class{}, "write projects/PROJECT/zones/ZONE/storagePools/NAME"},
		"a tag without its parent":           {map[string]string{"resource-tags": "env/prod"}, Class{}, "write PARENT/KEY/VALUE"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(test.parameters)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("it is %+v", got)
			}
			if test.problem == "" && err != nil || test.problem != "" && (!errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestAMessageAboutAParameterIsShort(t *testing.T) {
	for _, long := range []string{strings.Repeat("x", 1<<20), strings.Repeat("123/x/x,", 1<<17), strings.Repeat("projects/p/zones/z/storagePools/x,", 1<<15)} {
		for _, name := range []string{
			"type", "labels", "disk-encryption-kms-key", "provisioned-iops-on-create", "provisioned-throughput-on-create", "storage-pools", "resource-tags", long,
		} {
			if _, err := Of(map[string]string{name: long}); err == nil || len(err.Error()) > 800 {
				t.Errorf("%.40s: the error is %v", name, err)
			}
		}
	}
}

func TestAClassComesBeforeABackend(t *testing.T) {
	class := Class{Type: "pd-ssd", Labels: map[string]string{"team": "shop"}, Performance: performance.Performance{IOPS: 1}}
	others := Class{Type: "pd-balanced", Labels: map[string]string{"team": "all", "site": "north"}, Key: key, Performance: performance.Performance{IOPS: 2, Throughput: 3}}
	others.Pools, others.Tags = storagepool.Pools{"z": {Project: "p", Zone: "z", Name: "fast"}}, map[string]string{"123/env": "prod"}
	want := Class{
		Type: "pd-ssd", Labels: map[string]string{"team": "shop", "site": "north"}, Key: key, Pools: others.Pools, Tags: others.Tags,
		Performance: performance.Performance{IOPS: 1, Throughput: 3},
	}
	if got := class.Or(others); !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v", got)
	}
	if others.Labels["team"] != "all" {
		t.Error("the labels of the backend have changed")
	}
}

func TestTheVersionOfAKeyIsLeftOut(t *testing.T) {
	disk := &compute.Disk{}
	SetKey(disk, "")
	if KeyOf(disk) != "" || disk.DiskEncryptionKey != nil {
		t.Errorf("without a key it is %+v", disk)
	}
	SetKey(disk, key)
	if KeyOf(disk) != key {
		t.Errorf("it has %q", KeyOf(disk))
	}
	SetKey(disk, key+"/cryptoKeyVersions/7")
	if KeyOf(disk) != key {
		t.Errorf("it has %q", KeyOf(disk))
	}
}

func TestACopyHasTheTypeAndTheKeyOfItsSource(t *testing.T) {
	source := &compute.Disk{Name: "data", Type: "zones/z/diskTypes/pd-ssd"}
	SetKey(source, key+"/cryptoKeyVersions/7")
	for name, test := range map[string]struct {
		class   Class
		backend string
		problem string
	}{
		"nothing is demanded":      {Class{}, "", ""},
		"the same is demanded":     {Class{Type: "pd-ssd", Key: key}, "another", ""},
		"the backend demands it":   {Class{}, key, ""},
		"another type":             {Class{Type: "pd-balanced"}, "", "has the type pd-ssd"},
		"another key":              {Class{Key: "another"}, key, "but another is demanded"},
		"another of the backend's": {Class{}, "another", "but another is demanded"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.class.OfCopy(source, test.backend)
			if got.Type != "pd-ssd" || got.Key != key {
				t.Errorf("it is %+v", got)
			}
			if test.problem == "" && err != nil || test.problem != "" && (!errors.Is(err, backend.Invalid) || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
