package gcemock

// copyRoutes are about what is copied from disks.
func copyRoutes() []route {
	return []route{
		{"snapshots.list", "GET global/snapshots", listSnapshots},
		{"snapshots.get", "GET global/snapshots/{snapshot}", getSnapshot},
		{"snapshots.insert", "POST global/snapshots", changing(newInsertSnapshot)},
		{"snapshots.delete", "DELETE global/snapshots/{snapshot}", changing(newDeleteSnapshot)},
		{"images.list", "GET global/images", listImages},
		{"images.get", "GET global/images/{image}", getImage},
		{"images.getFromFamily", "GET global/images/family/{image}", getImageFromFamily},
		{"images.insert", "POST global/images", changing(newInsertImage)},
		{"images.delete", "DELETE global/images/{image}", changing(newDeleteImage)},
		{"instantSnapshots.list", "GET zones/{zone}/instantSnapshots", listInstantSnapshots},
		{"instantSnapshots.get", "GET zones/{zone}/instantSnapshots/{instantSnapshot}", getInstantSnapshot},
		{"instantSnapshots.insert", "POST zones/{zone}/instantSnapshots", changing(newInsertInstantSnapshot)},
		{"instantSnapshots.delete", "DELETE zones/{zone}/instantSnapshots/{instantSnapshot}", changing(newDeleteInstantSnapshot)},
		{"disks.createSnapshot", "POST zones/{zone}/disks/{disk}/createSnapshot", changing(newCreateSnapshot)},
		{"regionDisks.createSnapshot", "POST regions/{region}/disks/{disk}/createSnapshot", changing(newCreateSnapshot)},
	}
}

// copyJobs makes an empty job of each method that changes what is copied from disks.
func copyJobs() map[string]func() job {
	return map[string]func() job{
		"disks.createSnapshot":       func() job { return &insertSnapshot{} },
		"regionDisks.createSnapshot": func() job { return &insertSnapshot{} },
		"snapshots.insert":           func() job { return &insertSnapshot{} },
		"snapshots.delete":           func() job { return &deleteSnapshot{} },
		"images.insert":              func() job { return &insertImage{} },
		"images.delete":              func() job { return &deleteImage{} },
		"instantSnapshots.insert":    func() job { return &insertInstantSnapshot{} },
		"instantSnapshots.delete":    func() job { return &deleteInstantSnapshot{} },
	}
}
