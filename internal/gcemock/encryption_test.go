package gcemock_test

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/api/compute/v1"
)

const (
	oneKey     = "projects/keys/locations/europe-west3/keyRings/disks/cryptoKeys/one"
	anotherKey = "projects/keys/locations/europe-west3/keyRings/disks/cryptoKeys/another"
)

func encrypted(key string) *compute.CustomerEncryptionKey {
	return &compute.CustomerEncryptionKey{KmsKeyName: key}
}

func TestADiskAndWhatIsMadeOfItHaveItsKey(t *testing.T) {
	c := open(t, options(t))
	c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10, DiskEncryptionKey: encrypted(oneKey)}).Do())
	c.done(c.Disks.CreateSnapshot(project, zone, "data", &compute.Snapshot{Name: "copy"}).Do())
	c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: "clone", SourceDisk: diskLink("data")}).Do())
	c.done(c.Disks.Insert(project, zone, &compute.Disk{
		Name: "restored", SourceSnapshot: "global/snapshots/copy", DiskEncryptionKey: encrypted(anotherKey),
	}).Do())

	for name, key := range map[string]string{"data": oneKey, "clone": oneKey, "restored": anotherKey} {
		if disk := c.disk(name); disk.DiskEncryptionKey == nil || disk.DiskEncryptionKey.KmsKeyName != key+"/cryptoKeyVersions/1" {
			t.Errorf("disk %s has the key %+v", name, disk.DiskEncryptionKey)
		}
	}
	snapshot, err := c.Snapshots.Get(project, "copy").Do()
	if err != nil || snapshot.SnapshotEncryptionKey == nil || snapshot.SnapshotEncryptionKey.KmsKeyName != oneKey+"/cryptoKeyVersions/1" {
		t.Errorf("the snapshot is %+v: %v", snapshot, err)
	}
}

func TestAKeyThatCannotBeIsRefused(t *testing.T) {
	c := open(t, options(t))
	c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10, DiskEncryptionKey: encrypted(oneKey)}).Do())
	for name, disk := range map[string]*compute.Disk{
		"no key of Cloud KMS":               {Name: "a", SizeGb: 10, DiskEncryptionKey: encrypted("k")},
		"a clone's that isn't its source's": {Name: "a", SourceDisk: diskLink("data"), DiskEncryptionKey: encrypted(anotherKey)},
	} {
		t.Run(name, func(t *testing.T) {
			here := *c
			here.T = t
			_, err := c.Disks.Insert(project, zone, disk).Do()
			here.refused(err, http.StatusBadRequest, "invalid")
		})
	}
}

func TestAKeyIsUsedInItsStatesAlone(t *testing.T) {
	c := open(t, options(t))
	c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: "data", SizeGb: 10, DiskEncryptionKey: encrypted(oneKey)}).Do())
	for state, reason := range map[string]string{"DENIED": "kmsPermissionDenied", "DISABLED": "kmsFailedPrecondition"} {
		setKey(t, c.url, state, http.StatusOK)
		_, err := c.Disks.CreateSnapshot(project, zone, "data", &compute.Snapshot{Name: "copy"}).Do()
		c.refused(err, http.StatusBadRequest, reason)
	}
	setKey(t, c.url, "MISLAID", http.StatusBadRequest)
	setKey(t, c.url, "ENABLED", http.StatusOK)
	c.done(c.Disks.CreateSnapshot(project, zone, "data", &compute.Snapshot{Name: "copy"}).Do())
}

func setKey(t *testing.T, url, state string, want int) {
	t.Helper()
	body := strings.NewReader(`{"name":"` + oneKey + `","state":"` + state + `"}`)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url+"/_mock/keys", body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != want {
		t.Errorf("%s: %s", state, answer.Status)
	}
}
