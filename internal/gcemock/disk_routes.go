package gcemock

// diskRoutes are about zonal and regional disks, and pools and types of them.
func diskRoutes() []route {
	return []route{
		{"disks.list", "GET zones/{zone}/disks", listDisks},
		{"disks.aggregatedList", "GET aggregated/disks", aggregateDisks},
		{"disks.get", "GET zones/{zone}/disks/{disk}", getDisk},
		{"disks.insert", "POST zones/{zone}/disks", changing(newInsertDisk)},
		{"disks.delete", "DELETE zones/{zone}/disks/{disk}", changing(newDeleteDisk)},
		{"disks.resize", "POST zones/{zone}/disks/{disk}/resize", changing(newResizeDisk)},
		{"disks.update", "PATCH zones/{zone}/disks/{disk}", changing(newUpdateDisk)},
		{"disks.setLabels", "POST zones/{zone}/disks/{resource}/setLabels", changing(newLabelDisk)},
		{"regionDisks.list", "GET regions/{region}/disks", listDisks},
		{"regionDisks.get", "GET regions/{region}/disks/{disk}", getDisk},
		{"regionDisks.insert", "POST regions/{region}/disks", changing(newInsertDisk)},
		{"regionDisks.delete", "DELETE regions/{region}/disks/{disk}", changing(newDeleteDisk)},
		{"regionDisks.resize", "POST regions/{region}/disks/{disk}/resize", changing(newResizeDisk)},
		{"regionDisks.update", "PATCH regions/{region}/disks/{disk}", changing(newUpdateDisk)},
		{"regionDisks.setLabels", "POST regions/{region}/disks/{resource}/setLabels", changing(newLabelDisk)},
		{"storagePools.list", "GET zones/{zone}/storagePools", listPools},
		{"storagePools.get", "GET zones/{zone}/storagePools/{storagePool}", getPool},
		{"storagePools.listDisks", "GET zones/{zone}/storagePools/{storagePool}/listDisks", listPoolDisks},
		{"storagePools.insert", "POST zones/{zone}/storagePools", changing(newInsertPool)},
		{"storagePools.delete", "DELETE zones/{zone}/storagePools/{storagePool}", changing(newDeletePool)},
		{"diskTypes.list", "GET zones/{zone}/diskTypes", listDiskTypes},
		{"diskTypes.get", "GET zones/{zone}/diskTypes/{diskType}", getDiskType},
		{"diskTypes.aggregatedList", "GET aggregated/diskTypes", aggregateDiskTypes},
		{"regionDiskTypes.list", "GET regions/{region}/diskTypes", listDiskTypes},
		{"regionDiskTypes.get", "GET regions/{region}/diskTypes/{diskType}", getDiskType},
		{"storagePoolTypes.list", "GET zones/{zone}/storagePoolTypes", listPoolTypes},
		{"storagePoolTypes.get", "GET zones/{zone}/storagePoolTypes/{storagePoolType}", getPoolType},
	}
}

// diskJobs makes an empty job of each method that changes disks or pools.
func diskJobs() map[string]func() job {
	return map[string]func() job{
		"disks.insert":          func() job { return &insertDisk{} },
		"disks.delete":          func() job { return &deleteDisk{} },
		"disks.resize":          func() job { return &updateDisk{} },
		"disks.update":          func() job { return &updateDisk{} },
		"disks.setLabels":       func() job { return &labelDisk{} },
		"regionDisks.insert":    func() job { return &insertDisk{} },
		"regionDisks.delete":    func() job { return &deleteDisk{} },
		"regionDisks.resize":    func() job { return &updateDisk{} },
		"regionDisks.update":    func() job { return &updateDisk{} },
		"regionDisks.setLabels": func() job { return &labelDisk{} },
		"storagePools.insert":   func() job { return &insertPool{} },
		"storagePools.delete":   func() job { return &deletePool{} },
	}
}
