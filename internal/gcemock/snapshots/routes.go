package snapshots

import "github.com/stowage-dev/stowage/internal/gcemock/engine"

// Routes are about what is copied from disks.
func Routes() []engine.Route {
	return []engine.Route{
		{Method: "snapshots.list", Pattern: "GET global/snapshots", Answer: listSnapshots},
		{Method: "snapshots.get", Pattern: "GET global/snapshots/{snapshot}", Answer: getSnapshot},
		{Method: "snapshots.insert", Pattern: "POST global/snapshots", Answer: engine.Changing(newInsertSnapshot)},
		{Method: "snapshots.delete", Pattern: "DELETE global/snapshots/{snapshot}", Answer: engine.Changing(newDeleteSnapshot)},
		{Method: "images.list", Pattern: "GET global/images", Answer: listImages},
		{Method: "images.get", Pattern: "GET global/images/{image}", Answer: getImage},
		{Method: "images.getFromFamily", Pattern: "GET global/images/family/{image}", Answer: getImageFromFamily},
		{Method: "images.insert", Pattern: "POST global/images", Answer: engine.Changing(newInsertImage)},
		{Method: "images.delete", Pattern: "DELETE global/images/{image}", Answer: engine.Changing(newDeleteImage)},
		{Method: "instantSnapshots.list", Pattern: "GET zones/{zone}/instantSnapshots", Answer: listInstantSnapshots},
		{Method: "instantSnapshots.get", Pattern: "GET zones/{zone}/instantSnapshots/{instantSnapshot}", Answer: getInstantSnapshot},
		{Method: "instantSnapshots.insert", Pattern: "POST zones/{zone}/instantSnapshots", Answer: engine.Changing(newInsertInstantSnapshot)},
		{Method: "instantSnapshots.delete", Pattern: "DELETE zones/{zone}/instantSnapshots/{instantSnapshot}", Answer: engine.Changing(newDeleteInstantSnapshot)},
		{Method: "disks.createSnapshot", Pattern: "POST zones/{zone}/disks/{disk}/createSnapshot", Answer: engine.Changing(newCreateSnapshot)},
		{Method: "regionDisks.createSnapshot", Pattern: "POST regions/{region}/disks/{disk}/createSnapshot", Answer: engine.Changing(newCreateSnapshot)},
	}
}

// Jobs makes an empty job of each method that changes what is copied from disks.
func Jobs() map[string]func() engine.Job {
	return map[string]func() engine.Job{
		"disks.createSnapshot":       func() engine.Job { return &insertSnapshot{} },
		"regionDisks.createSnapshot": func() engine.Job { return &insertSnapshot{} },
		"snapshots.insert":           func() engine.Job { return &insertSnapshot{} },
		"snapshots.delete":           func() engine.Job { return &deleteSnapshot{} },
		"images.insert":              func() engine.Job { return &insertImage{} },
		"images.delete":              func() engine.Job { return &deleteImage{} },
		"instantSnapshots.insert":    func() engine.Job { return &insertInstantSnapshot{} },
		"instantSnapshots.delete":    func() engine.Job { return &deleteInstantSnapshot{} },
	}
}
