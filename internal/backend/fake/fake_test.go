package fake_test

import (
	"path"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/fake"
)

func TestTheFakeKeepsTheContract(t *testing.T) {
	backendtest.Contract(t, func(*testing.T) (backend.Backend, func(string) bool) {
		storage := fake.New()
		return storage, storage.Has
	})
}

func TestTheFakesKeepTheContractOfSnapshots(t *testing.T) {
	backendtest.SnapshotContract(t, func(*testing.T) (backend.Backend, func(string) bool) {
		storage := fake.New()
		return storage, storage.Has
	})
	backendtest.SnapshotContract(t, func(*testing.T) (backend.Backend, func(string) bool) {
		storage := fake.New()
		return fake.NewCSI(storage), storage.Has
	})
}

func TestTheFakeKeepsTheContractOfChanges(t *testing.T) {
	backendtest.ModifyContract(t, func(*testing.T) (backend.Backend, func(string) map[string]string) {
		driver := fake.NewCSI(fake.New())
		return driver, func(handle string) map[string]string { return driver.Request(path.Base(handle)).Attributes.Parameters }
	})
}

func TestTheFakeKeepsTheContractOfAttaching(t *testing.T) {
	backendtest.AttachContract(t, func(*testing.T) backendtest.Machines {
		storage := fake.New()
		absent := backend.NodeIdentity{Name: "node-9", ProviderID: "fake://zone/node-9"}
		storage.SetMachine(absent, backend.MachineGone)
		storage.AddExisting("projects/p/zones/z/disks/legacy")
		return backendtest.Machines{
			Backend: storage, Existing: "projects/p/zones/z/disks/legacy",
			Nodes: [2]backend.NodeIdentity{
				{Name: "node-1", ProviderID: "fake://zone/node-1"}, {Name: "node-2", ProviderID: "fake://zone/node-2"},
			},
			Absent: absent,
			Stop:   func(node backend.NodeIdentity) { storage.SetMachine(node, backend.MachineStopped) },
			Remove: func(node backend.NodeIdentity) { storage.SetMachine(node, backend.MachineGone) },
		}
	})
}
