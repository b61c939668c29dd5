package gcemock

import (
	"net/http"
	"slices"
	"strings"
)

// route is one of Google's methods.
type route struct {
	// method is its name in Google's documentation, without "compute.".
	method string
	// pattern is verb and path, below the project.
	pattern string
	answer  func(*Engine, *request) (any, error)
}

// routes are all methods that are served.
func routes() []route {
	return slices.Concat(catalogRoutes(), diskRoutes(), copyRoutes(), instanceRoutes(), operationRoutes())
}

// methods are the names of all methods that are served.
func methods() []string {
	var names []string
	for _, route := range routes() {
		names = append(names, route.method)
	}
	return names
}

// catalogRoutes read what was always there.
func catalogRoutes() []route {
	return []route{
		{"projects.get", "GET ", (*Engine).getProject},
		{"regions.list", "GET regions", (*Engine).listRegions},
		{"regions.get", "GET regions/{name}", (*Engine).getRegion},
		{"zones.list", "GET zones", (*Engine).listZones},
		{"zones.get", "GET zones/{zone}", (*Engine).getZone},
		{"diskTypes.list", "GET zones/{zone}/diskTypes", (*Engine).listDiskTypes},
		{"diskTypes.get", "GET zones/{zone}/diskTypes/{diskType}", (*Engine).getDiskType},
		{"diskTypes.aggregatedList", "GET aggregated/diskTypes", (*Engine).aggregateDiskTypes},
		{"regionDiskTypes.list", "GET regions/{region}/diskTypes", (*Engine).listDiskTypes},
		{"regionDiskTypes.get", "GET regions/{region}/diskTypes/{diskType}", (*Engine).getDiskType},
		{"machineTypes.list", "GET zones/{zone}/machineTypes", (*Engine).listMachineTypes},
		{"machineTypes.aggregatedList", "GET aggregated/machineTypes", (*Engine).aggregateMachineTypes},
		{"machineTypes.get", "GET zones/{zone}/machineTypes/{machineType}", (*Engine).getMachineType},
		{"storagePoolTypes.list", "GET zones/{zone}/storagePoolTypes", (*Engine).listPoolTypes},
		{"storagePoolTypes.get", "GET zones/{zone}/storagePoolTypes/{storagePoolType}", (*Engine).getPoolType},
	}
}

// diskRoutes are about zonal and regional disks, and pools of them.
func diskRoutes() []route {
	return []route{
		{"disks.list", "GET zones/{zone}/disks", (*Engine).listDisks},
		{"disks.aggregatedList", "GET aggregated/disks", (*Engine).aggregateDisks},
		{"disks.get", "GET zones/{zone}/disks/{disk}", (*Engine).getDisk},
		{"disks.insert", "POST zones/{zone}/disks", changing(newInsertDisk)},
		{"disks.delete", "DELETE zones/{zone}/disks/{disk}", changing(newDeleteDisk)},
		{"disks.resize", "POST zones/{zone}/disks/{disk}/resize", changing(newResizeDisk)},
		{"disks.update", "PATCH zones/{zone}/disks/{disk}", changing(newUpdateDisk)},
		{"disks.setLabels", "POST zones/{zone}/disks/{resource}/setLabels", changing(newLabelDisk)},
		{"disks.createSnapshot", "POST zones/{zone}/disks/{disk}/createSnapshot", changing(newCreateSnapshot)},
		{"regionDisks.list", "GET regions/{region}/disks", (*Engine).listDisks},
		{"regionDisks.get", "GET regions/{region}/disks/{disk}", (*Engine).getDisk},
		{"regionDisks.insert", "POST regions/{region}/disks", changing(newInsertDisk)},
		{"regionDisks.delete", "DELETE regions/{region}/disks/{disk}", changing(newDeleteDisk)},
		{"regionDisks.resize", "POST regions/{region}/disks/{disk}/resize", changing(newResizeDisk)},
		{"regionDisks.update", "PATCH regions/{region}/disks/{disk}", changing(newUpdateDisk)},
		{"regionDisks.setLabels", "POST regions/{region}/disks/{resource}/setLabels", changing(newLabelDisk)},
		{"regionDisks.createSnapshot", "POST regions/{region}/disks/{disk}/createSnapshot", changing(newCreateSnapshot)},
		{"storagePools.list", "GET zones/{zone}/storagePools", (*Engine).listPools},
		{"storagePools.get", "GET zones/{zone}/storagePools/{storagePool}", (*Engine).getPool},
		{"storagePools.listDisks", "GET zones/{zone}/storagePools/{storagePool}/listDisks", (*Engine).listPoolDisks},
		{"storagePools.insert", "POST zones/{zone}/storagePools", changing(newInsertPool)},
		{"storagePools.delete", "DELETE zones/{zone}/storagePools/{storagePool}", changing(newDeletePool)},
	}
}

// copyRoutes are about what is copied from disks.
func copyRoutes() []route {
	return []route{
		{"snapshots.list", "GET global/snapshots", (*Engine).listSnapshots},
		{"snapshots.get", "GET global/snapshots/{snapshot}", (*Engine).getSnapshot},
		{"snapshots.insert", "POST global/snapshots", changing(newInsertSnapshot)},
		{"snapshots.delete", "DELETE global/snapshots/{snapshot}", changing(newDeleteSnapshot)},
		{"images.list", "GET global/images", (*Engine).listImages},
		{"images.get", "GET global/images/{image}", (*Engine).getImage},
		{"images.getFromFamily", "GET global/images/family/{image}", (*Engine).getImageFromFamily},
		{"images.insert", "POST global/images", changing(newInsertImage)},
		{"images.delete", "DELETE global/images/{image}", changing(newDeleteImage)},
		{"instantSnapshots.list", "GET zones/{zone}/instantSnapshots", (*Engine).listInstantSnapshots},
		{"instantSnapshots.get", "GET zones/{zone}/instantSnapshots/{instantSnapshot}", (*Engine).getInstantSnapshot},
		{"instantSnapshots.insert", "POST zones/{zone}/instantSnapshots", changing(newInsertInstantSnapshot)},
		{"instantSnapshots.delete", "DELETE zones/{zone}/instantSnapshots/{instantSnapshot}", changing(newDeleteInstantSnapshot)},
	}
}

// instanceRoutes are about instances, and the disks that they have.
func instanceRoutes() []route {
	return []route{
		{"instances.list", "GET zones/{zone}/instances", (*Engine).listInstances},
		{"instances.aggregatedList", "GET aggregated/instances", (*Engine).aggregateInstances},
		{"instances.get", "GET zones/{zone}/instances/{instance}", (*Engine).getInstance},
		{"instances.insert", "POST zones/{zone}/instances", changing(newInsertInstance)},
		{"instances.delete", "DELETE zones/{zone}/instances/{instance}", changing(newDeleteInstance)},
		{"instances.stop", "POST zones/{zone}/instances/{instance}/stop", changing(newStopInstance)},
		{"instances.start", "POST zones/{zone}/instances/{instance}/start", changing(newStartInstance)},
		{"instances.reset", "POST zones/{zone}/instances/{instance}/reset", changing(newResetInstance)},
		{"instances.attachDisk", "POST zones/{zone}/instances/{instance}/attachDisk", changing(newAttachDisk)},
		{"instances.detachDisk", "POST zones/{zone}/instances/{instance}/detachDisk", changing(newDetachDisk)},
		{"instances.setDiskAutoDelete", "POST zones/{zone}/instances/{instance}/setDiskAutoDelete", changing(newSetAutoDelete)},
	}
}

// operationRoutes are about operations, by scope.
func operationRoutes() []route {
	return []route{
		{"regionOperations.list", "GET regions/{region}/operations", (*Engine).listOperations},
		{"regionOperations.get", "GET regions/{region}/operations/{operation}", (*Engine).getOperation},
		{"regionOperations.wait", "POST regions/{region}/operations/{operation}/wait", (*Engine).waitOperation},
		{"zoneOperations.list", "GET zones/{zone}/operations", (*Engine).listOperations},
		{"zoneOperations.get", "GET zones/{zone}/operations/{operation}", (*Engine).getOperation},
		{"zoneOperations.wait", "POST zones/{zone}/operations/{operation}/wait", (*Engine).waitOperation},
		{"globalOperations.list", "GET global/operations", (*Engine).listOperations},
		{"globalOperations.get", "GET global/operations/{operation}", (*Engine).getOperation},
		{"globalOperations.wait", "POST global/operations/{operation}/wait", (*Engine).waitOperation},
	}
}

// routed puts all that is served behind one handler.
func (s *Server) routed() *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range routes() {
		verb, path, _ := strings.Cut(route.pattern, " ")
		for _, version := range versions {
			pattern := strings.TrimSuffix(basePath+version+"/projects/{project}/"+path, "/")
			mux.HandleFunc(verb+" "+pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, route, version) })
		}
	}
	s.routeAdmin(mux)
	for _, version := range versions {
		mux.HandleFunc(basePath+version+"/projects/", s.refuseMethod)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		// Outside the API, Google answers with a page for people, and no reason.
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<title>Error 404 (Not Found)</title>\n")) // a client that went away hears nothing
	})
	return mux
}

// refuseMethod refuses what the API has and this server does not: never with notFound,
// which clients take for "the resource is gone".
func (s *Server) refuseMethod(w http.ResponseWriter, r *http.Request) {
	err := s.authorize(r)
	if err == nil {
		err = errNotServed(r.Method + " " + r.URL.Path)
	}
	respond(w, nil, err)
}

// serve answers a call, or makes it go wrong as it was told to.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, route route, version string) {
	answer, lost, err := s.answer(r, route, version)
	s.engine.options.Log.V(1).Info("answered", "method", route.method, "path", r.URL.Path, "error", err, "lost", lost)
	if lost {
		// It was done, and the client never hears of it.
		panic(http.ErrAbortHandler)
	}
	respond(w, answer, err)
}

func (s *Server) answer(r *http.Request, route route, version string) (answer any, lost bool, err error) {
	if err := s.authorize(r); err != nil {
		return nil, false, err
	}
	call, err := read(r, method{name: route.method, version: version, changes: s.engine.jobs[route.method] != nil}, s.engine.options.Places)
	if err != nil {
		return nil, false, err
	}
	call.fault = s.engine.faults.draw(route.method)
	if err := s.engine.pause(r.Context(), s.engine.faults.latency().Answer); err != nil {
		return nil, false, err
	}
	if refused := refusal(call.fault); refused != nil {
		return nil, false, refused
	}
	if answer, err = route.answer(s.engine, call); err == nil {
		answer, err = call.fields.from(answer)
	}
	return answer, call.fault.losesAnswer(), err
}
