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
	answer  func(*Server, *request) (any, error)
}

// routes are all methods that are served.
func routes() []route {
	return slices.Concat(catalogRoutes(), diskRoutes(), copyRoutes(), instanceRoutes(), operationRoutes())
}

// catalogRoutes read what was always there.
func catalogRoutes() []route {
	return []route{
		{"projects.get", "GET ", (*Server).getProject},
		{"regions.list", "GET regions", (*Server).listRegions},
		{"regions.get", "GET regions/{name}", (*Server).getRegion},
		{"zones.list", "GET zones", (*Server).listZones},
		{"zones.get", "GET zones/{zone}", (*Server).getZone},
		{"diskTypes.list", "GET zones/{zone}/diskTypes", (*Server).listDiskTypes},
		{"diskTypes.get", "GET zones/{zone}/diskTypes/{diskType}", (*Server).getDiskType},
		{"diskTypes.aggregatedList", "GET aggregated/diskTypes", (*Server).aggregateDiskTypes},
		{"regionDiskTypes.list", "GET regions/{region}/diskTypes", (*Server).listDiskTypes},
		{"regionDiskTypes.get", "GET regions/{region}/diskTypes/{diskType}", (*Server).getDiskType},
		{"machineTypes.list", "GET zones/{zone}/machineTypes", (*Server).listMachineTypes},
		{"machineTypes.aggregatedList", "GET aggregated/machineTypes", (*Server).aggregateMachineTypes},
		{"machineTypes.get", "GET zones/{zone}/machineTypes/{machineType}", (*Server).getMachineType},
		{"storagePoolTypes.list", "GET zones/{zone}/storagePoolTypes", (*Server).listPoolTypes},
		{"storagePoolTypes.get", "GET zones/{zone}/storagePoolTypes/{storagePoolType}", (*Server).getPoolType},
	}
}

// diskRoutes are about zonal and regional disks, and pools of them.
func diskRoutes() []route {
	return []route{
		{"disks.list", "GET zones/{zone}/disks", (*Server).listDisks},
		{"disks.aggregatedList", "GET aggregated/disks", (*Server).aggregateDisks},
		{"disks.get", "GET zones/{zone}/disks/{disk}", (*Server).getDisk},
		{"disks.insert", "POST zones/{zone}/disks", changing(newInsertDisk)},
		{"disks.delete", "DELETE zones/{zone}/disks/{disk}", changing(newDeleteDisk)},
		{"disks.resize", "POST zones/{zone}/disks/{disk}/resize", changing(newResizeDisk)},
		{"disks.update", "PATCH zones/{zone}/disks/{disk}", changing(newUpdateDisk)},
		{"disks.setLabels", "POST zones/{zone}/disks/{resource}/setLabels", changing(newLabelDisk)},
		{"disks.createSnapshot", "POST zones/{zone}/disks/{disk}/createSnapshot", changing(newCreateSnapshot)},
		{"regionDisks.list", "GET regions/{region}/disks", (*Server).listDisks},
		{"regionDisks.get", "GET regions/{region}/disks/{disk}", (*Server).getDisk},
		{"regionDisks.insert", "POST regions/{region}/disks", changing(newInsertDisk)},
		{"regionDisks.delete", "DELETE regions/{region}/disks/{disk}", changing(newDeleteDisk)},
		{"regionDisks.resize", "POST regions/{region}/disks/{disk}/resize", changing(newResizeDisk)},
		{"regionDisks.update", "PATCH regions/{region}/disks/{disk}", changing(newUpdateDisk)},
		{"regionDisks.setLabels", "POST regions/{region}/disks/{resource}/setLabels", changing(newLabelDisk)},
		{"regionDisks.createSnapshot", "POST regions/{region}/disks/{disk}/createSnapshot", changing(newCreateSnapshot)},
		{"storagePools.list", "GET zones/{zone}/storagePools", (*Server).listPools},
		{"storagePools.get", "GET zones/{zone}/storagePools/{storagePool}", (*Server).getPool},
		{"storagePools.listDisks", "GET zones/{zone}/storagePools/{storagePool}/listDisks", (*Server).listPoolDisks},
		{"storagePools.insert", "POST zones/{zone}/storagePools", changing(newInsertPool)},
		{"storagePools.delete", "DELETE zones/{zone}/storagePools/{storagePool}", changing(newDeletePool)},
	}
}

// copyRoutes are about what is copied from disks.
func copyRoutes() []route {
	return []route{
		{"snapshots.list", "GET global/snapshots", (*Server).listSnapshots},
		{"snapshots.get", "GET global/snapshots/{snapshot}", (*Server).getSnapshot},
		{"snapshots.insert", "POST global/snapshots", changing(newInsertSnapshot)},
		{"snapshots.delete", "DELETE global/snapshots/{snapshot}", changing(newDeleteSnapshot)},
		{"images.list", "GET global/images", (*Server).listImages},
		{"images.get", "GET global/images/{image}", (*Server).getImage},
		{"images.getFromFamily", "GET global/images/family/{image}", (*Server).getImageFromFamily},
		{"images.insert", "POST global/images", changing(newInsertImage)},
		{"images.delete", "DELETE global/images/{image}", changing(newDeleteImage)},
		{"instantSnapshots.list", "GET zones/{zone}/instantSnapshots", (*Server).listInstantSnapshots},
		{"instantSnapshots.get", "GET zones/{zone}/instantSnapshots/{instantSnapshot}", (*Server).getInstantSnapshot},
		{"instantSnapshots.insert", "POST zones/{zone}/instantSnapshots", changing(newInsertInstantSnapshot)},
		{"instantSnapshots.delete", "DELETE zones/{zone}/instantSnapshots/{instantSnapshot}", changing(newDeleteInstantSnapshot)},
	}
}

// instanceRoutes are about instances, and the disks that they have.
func instanceRoutes() []route {
	return []route{
		{"instances.list", "GET zones/{zone}/instances", (*Server).listInstances},
		{"instances.aggregatedList", "GET aggregated/instances", (*Server).aggregateInstances},
		{"instances.get", "GET zones/{zone}/instances/{instance}", (*Server).getInstance},
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
		{"regionOperations.list", "GET regions/{region}/operations", (*Server).listOperations},
		{"regionOperations.get", "GET regions/{region}/operations/{operation}", (*Server).getOperation},
		{"regionOperations.wait", "POST regions/{region}/operations/{operation}/wait", (*Server).waitOperation},
		{"zoneOperations.list", "GET zones/{zone}/operations", (*Server).listOperations},
		{"zoneOperations.get", "GET zones/{zone}/operations/{operation}", (*Server).getOperation},
		{"zoneOperations.wait", "POST zones/{zone}/operations/{operation}/wait", (*Server).waitOperation},
		{"globalOperations.list", "GET global/operations", (*Server).listOperations},
		{"globalOperations.get", "GET global/operations/{operation}", (*Server).getOperation},
		{"globalOperations.wait", "POST global/operations/{operation}/wait", (*Server).waitOperation},
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
	s.options.Log.V(1).Info("answered", "method", route.method, "path", r.URL.Path, "error", err, "lost", lost)
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
	call, err := s.read(route.method, version, r)
	if err != nil {
		return nil, false, err
	}
	call.fault = s.faults.draw(route.method)
	if err := s.pause(r.Context(), s.faults.latency().Answer); err != nil {
		return nil, false, err
	}
	if refused := call.fault.refuses(); refused != nil {
		return nil, false, refused
	}
	if answer, err = route.answer(s, call); err == nil {
		answer, err = call.fields.from(answer)
	}
	return answer, call.fault.losesAnswer(), err
}
