package instances

import "github.com/stowage-dev/stowage/internal/gcemock/engine"

// Routes are about instances, their types, and the disks that they have.
func Routes() []engine.Route {
	return []engine.Route{
		{Method: "instances.list", Pattern: "GET zones/{zone}/instances", Answer: listInstances},
		{Method: "instances.aggregatedList", Pattern: "GET aggregated/instances", Answer: aggregateInstances},
		{Method: "instances.get", Pattern: "GET zones/{zone}/instances/{instance}", Answer: getInstance},
		{Method: "instances.insert", Pattern: "POST zones/{zone}/instances", Answer: engine.Changing(newInsertInstance)},
		{Method: "instances.delete", Pattern: "DELETE zones/{zone}/instances/{instance}", Answer: engine.Changing(newDeleteInstance)},
		{Method: "instances.stop", Pattern: "POST zones/{zone}/instances/{instance}/stop", Answer: engine.Changing(newStopInstance)},
		{Method: "instances.start", Pattern: "POST zones/{zone}/instances/{instance}/start", Answer: engine.Changing(newStartInstance)},
		{Method: "instances.reset", Pattern: "POST zones/{zone}/instances/{instance}/reset", Answer: engine.Changing(newResetInstance)},
		{Method: "instances.attachDisk", Pattern: "POST zones/{zone}/instances/{instance}/attachDisk", Answer: engine.Changing(newAttachDisk)},
		{Method: "instances.detachDisk", Pattern: "POST zones/{zone}/instances/{instance}/detachDisk", Answer: engine.Changing(newDetachDisk)},
		{Method: "instances.setDiskAutoDelete", Pattern: "POST zones/{zone}/instances/{instance}/setDiskAutoDelete", Answer: engine.Changing(newSetAutoDelete)},
		{Method: "machineTypes.list", Pattern: "GET zones/{zone}/machineTypes", Answer: listMachineTypes},
		{Method: "machineTypes.aggregatedList", Pattern: "GET aggregated/machineTypes", Answer: aggregateMachineTypes},
		{Method: "machineTypes.get", Pattern: "GET zones/{zone}/machineTypes/{machineType}", Answer: getMachineType},
	}
}

// Jobs makes an empty job of each method that changes instances.
func Jobs() map[string]func() engine.Job {
	return map[string]func() engine.Job{
		"instances.insert":            func() engine.Job { return &insertInstance{} },
		"instances.delete":            func() engine.Job { return &deleteInstance{} },
		"instances.stop":              func() engine.Job { return &powerInstance{} },
		"instances.start":             func() engine.Job { return &powerInstance{} },
		"instances.reset":             func() engine.Job { return &powerInstance{} },
		"instances.attachDisk":        func() engine.Job { return &attachDisk{} },
		"instances.detachDisk":        func() engine.Job { return &detachDisk{} },
		"instances.setDiskAutoDelete": func() engine.Job { return &setAutoDelete{} },
	}
}
