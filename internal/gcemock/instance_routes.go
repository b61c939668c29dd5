package gcemock

// instanceRoutes are about instances, their types, and the disks that they have.
func instanceRoutes() []route {
	return []route{
		{"instances.list", "GET zones/{zone}/instances", listInstances},
		{"instances.aggregatedList", "GET aggregated/instances", aggregateInstances},
		{"instances.get", "GET zones/{zone}/instances/{instance}", getInstance},
		{"instances.insert", "POST zones/{zone}/instances", changing(newInsertInstance)},
		{"instances.delete", "DELETE zones/{zone}/instances/{instance}", changing(newDeleteInstance)},
		{"instances.stop", "POST zones/{zone}/instances/{instance}/stop", changing(newStopInstance)},
		{"instances.start", "POST zones/{zone}/instances/{instance}/start", changing(newStartInstance)},
		{"instances.reset", "POST zones/{zone}/instances/{instance}/reset", changing(newResetInstance)},
		{"instances.attachDisk", "POST zones/{zone}/instances/{instance}/attachDisk", changing(newAttachDisk)},
		{"instances.detachDisk", "POST zones/{zone}/instances/{instance}/detachDisk", changing(newDetachDisk)},
		{"instances.setDiskAutoDelete", "POST zones/{zone}/instances/{instance}/setDiskAutoDelete", changing(newSetAutoDelete)},
		{"machineTypes.list", "GET zones/{zone}/machineTypes", listMachineTypes},
		{"machineTypes.aggregatedList", "GET aggregated/machineTypes", aggregateMachineTypes},
		{"machineTypes.get", "GET zones/{zone}/machineTypes/{machineType}", getMachineType},
	}
}

// instanceJobs makes an empty job of each method that changes instances.
func instanceJobs() map[string]func() job {
	return map[string]func() job{
		"instances.insert":            func() job { return &insertInstance{} },
		"instances.delete":            func() job { return &deleteInstance{} },
		"instances.stop":              func() job { return &powerInstance{} },
		"instances.start":             func() job { return &powerInstance{} },
		"instances.reset":             func() job { return &powerInstance{} },
		"instances.attachDisk":        func() job { return &attachDisk{} },
		"instances.detachDisk":        func() job { return &detachDisk{} },
		"instances.setDiskAutoDelete": func() job { return &setAutoDelete{} },
	}
}
