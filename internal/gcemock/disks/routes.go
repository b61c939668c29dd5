package disks

import "github.com/stowage-dev/stowage/internal/gcemock/engine"

// Routes are about zonal and regional disks, and pools and types of them.
func Routes() []engine.Route {
	return []engine.Route{
		{Method: "disks.list", Pattern: "GET zones/{zone}/disks", Answer: listDisks},
		{Method: "disks.aggregatedList", Pattern: "GET aggregated/disks", Answer: aggregateDisks},
		{Method: "disks.get", Pattern: "GET zones/{zone}/disks/{disk}", Answer: getDisk},
		{Method: "disks.insert", Pattern: "POST zones/{zone}/disks", Answer: engine.Changing(newInsertDisk)},
		{Method: "disks.delete", Pattern: "DELETE zones/{zone}/disks/{disk}", Answer: engine.Changing(newDeleteDisk)},
		{Method: "disks.resize", Pattern: "POST zones/{zone}/disks/{disk}/resize", Answer: engine.Changing(newResizeDisk)},
		{Method: "disks.update", Pattern: "PATCH zones/{zone}/disks/{disk}", Answer: engine.Changing(newUpdateDisk)},
		{Method: "disks.setLabels", Pattern: "POST zones/{zone}/disks/{resource}/setLabels", Answer: engine.Changing(newLabelDisk)},
		{Method: "regionDisks.list", Pattern: "GET regions/{region}/disks", Answer: listDisks},
		{Method: "regionDisks.get", Pattern: "GET regions/{region}/disks/{disk}", Answer: getDisk},
		{Method: "regionDisks.insert", Pattern: "POST regions/{region}/disks", Answer: engine.Changing(newInsertDisk)},
		{Method: "regionDisks.delete", Pattern: "DELETE regions/{region}/disks/{disk}", Answer: engine.Changing(newDeleteDisk)},
		{Method: "regionDisks.resize", Pattern: "POST regions/{region}/disks/{disk}/resize", Answer: engine.Changing(newResizeDisk)},
		{Method: "regionDisks.update", Pattern: "PATCH regions/{region}/disks/{disk}", Answer: engine.Changing(newUpdateDisk)},
		{Method: "regionDisks.setLabels", Pattern: "POST regions/{region}/disks/{resource}/setLabels", Answer: engine.Changing(newLabelDisk)},
		{Method: "storagePools.list", Pattern: "GET zones/{zone}/storagePools", Answer: listPools},
		{Method: "storagePools.get", Pattern: "GET zones/{zone}/storagePools/{storagePool}", Answer: getPool},
		{Method: "storagePools.listDisks", Pattern: "GET zones/{zone}/storagePools/{storagePool}/listDisks", Answer: listPoolDisks},
		{Method: "storagePools.insert", Pattern: "POST zones/{zone}/storagePools", Answer: engine.Changing(newInsertPool)},
		{Method: "storagePools.delete", Pattern: "DELETE zones/{zone}/storagePools/{storagePool}", Answer: engine.Changing(newDeletePool)},
		{Method: "diskTypes.list", Pattern: "GET zones/{zone}/diskTypes", Answer: listDiskTypes},
		{Method: "diskTypes.get", Pattern: "GET zones/{zone}/diskTypes/{diskType}", Answer: getDiskType},
		{Method: "diskTypes.aggregatedList", Pattern: "GET aggregated/diskTypes", Answer: aggregateDiskTypes},
		{Method: "regionDiskTypes.list", Pattern: "GET regions/{region}/diskTypes", Answer: listDiskTypes},
		{Method: "regionDiskTypes.get", Pattern: "GET regions/{region}/diskTypes/{diskType}", Answer: getDiskType},
		{Method: "storagePoolTypes.list", Pattern: "GET zones/{zone}/storagePoolTypes", Answer: listPoolTypes},
		{Method: "storagePoolTypes.get", Pattern: "GET zones/{zone}/storagePoolTypes/{storagePoolType}", Answer: getPoolType},
	}
}

// Jobs makes an empty job of each method that changes disks or pools.
func Jobs() map[string]func() engine.Job {
	return map[string]func() engine.Job{
		"disks.insert":          func() engine.Job { return &insertDisk{} },
		"disks.delete":          func() engine.Job { return &deleteDisk{} },
		"disks.resize":          func() engine.Job { return &updateDisk{} },
		"disks.update":          func() engine.Job { return &updateDisk{} },
		"disks.setLabels":       func() engine.Job { return &labelDisk{} },
		"regionDisks.insert":    func() engine.Job { return &insertDisk{} },
		"regionDisks.delete":    func() engine.Job { return &deleteDisk{} },
		"regionDisks.resize":    func() engine.Job { return &updateDisk{} },
		"regionDisks.update":    func() engine.Job { return &updateDisk{} },
		"regionDisks.setLabels": func() engine.Job { return &labelDisk{} },
		"storagePools.insert":   func() engine.Job { return &insertPool{} },
		"storagePools.delete":   func() engine.Job { return &deletePool{} },
	}
}
