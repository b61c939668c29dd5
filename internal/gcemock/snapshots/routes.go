package snapshots

import (
	"maps"
	"slices"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
)

// Routes are about what is copied from disks.
func Routes() []engine.Route {
	return slices.Concat(snapshots.routes(), images.routes(), instantSnapshots.routes(), []engine.Route{
		{Method: "images.getFromFamily", Pattern: "GET global/images/family/{image}", Answer: getImageFromFamily},
		{Method: "disks.createSnapshot", Pattern: "POST zones/{zone}/disks/{disk}/createSnapshot", Answer: engine.Changing(snapshots.newInsert)},
		{Method: "regionDisks.createSnapshot", Pattern: "POST regions/{region}/disks/{disk}/createSnapshot", Answer: engine.Changing(snapshots.newInsert)},
	})
}

// routes are those that each kind has.
func (k *kind[T]) routes() []engine.Route {
	collection, scope := k.name+"s", "global"
	if k.isZonal {
		scope = "zones/{zone}"
	}
	one := scope + "/" + collection + "/{" + k.name + "}"
	return []engine.Route{
		{Method: collection + ".list", Pattern: "GET " + scope + "/" + collection, Answer: k.list},
		{Method: collection + ".get", Pattern: "GET " + one, Answer: k.get},
		{Method: collection + ".insert", Pattern: "POST " + scope + "/" + collection, Answer: engine.Changing(k.newInsert)},
		{
			Method: collection + ".setLabels", Pattern: "POST " + scope + "/" + collection + "/{resource}/setLabels",
			Answer: engine.Changing(k.newLabel),
		},
		{Method: collection + ".delete", Pattern: "DELETE " + one, Answer: engine.Changing(k.newRemove)},
	}
}

// Jobs makes an empty job of each method that changes what is copied from disks.
func Jobs() map[string]func() engine.Job {
	all := snapshots.jobs()
	maps.Copy(all, images.jobs())
	maps.Copy(all, instantSnapshots.jobs())
	for _, method := range []string{"disks.createSnapshot", "regionDisks.createSnapshot"} {
		all[method] = all["snapshots.insert"]
	}
	return all
}

func (k *kind[T]) jobs() map[string]func() engine.Job {
	return map[string]func() engine.Job{
		k.name + "s.insert":    func() engine.Job { return &insert[T]{kind: k} },
		k.name + "s.setLabels": func() engine.Job { return &label[T]{kind: k} },
		k.name + "s.delete":    func() engine.Job { return &remove[T]{kind: k} },
	}
}
