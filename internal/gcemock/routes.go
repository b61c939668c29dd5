package gcemock

import (
	"net/http"
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
	return []route{
		{"projects.get", "GET ", (*Server).getProject},
		{"regions.get", "GET regions/{region}", (*Server).getRegion},
		{"zones.list", "GET zones", (*Server).listZones},
		{"zones.get", "GET zones/{zone}", (*Server).getZone},
		{"diskTypes.list", "GET zones/{zone}/diskTypes", (*Server).listDiskTypes},
		{"diskTypes.get", "GET zones/{zone}/diskTypes/{diskType}", (*Server).getDiskType},
		{"machineTypes.get", "GET zones/{zone}/machineTypes/{machineType}", (*Server).getMachineType},

		{"disks.list", "GET zones/{zone}/disks", (*Server).listDisks},
		{"disks.aggregatedList", "GET aggregated/disks", (*Server).aggregateDisks},
		{"disks.get", "GET zones/{zone}/disks/{disk}", (*Server).getDisk},
		{"disks.insert", "POST zones/{zone}/disks", changing(newInsertDisk)},
		{"disks.delete", "DELETE zones/{zone}/disks/{disk}", changing(newDeleteDisk)},
		{"disks.resize", "POST zones/{zone}/disks/{disk}/resize", changing(newResizeDisk)},
		{"disks.setLabels", "POST zones/{zone}/disks/{resource}/setLabels", changing(newLabelDisk)},
		{"disks.createSnapshot", "POST zones/{zone}/disks/{disk}/createSnapshot", changing(newCreateSnapshot)},

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

		{"snapshots.list", "GET global/snapshots", (*Server).listSnapshots},
		{"snapshots.get", "GET global/snapshots/{snapshot}", (*Server).getSnapshot},
		{"snapshots.insert", "POST global/snapshots", changing(newInsertSnapshot)},
		{"snapshots.delete", "DELETE global/snapshots/{snapshot}", changing(newDeleteSnapshot)},

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
		pattern := strings.TrimSuffix(basePath+"projects/{project}/"+path, "/")
		mux.HandleFunc(verb+" "+pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, route) })
	}
	s.routeAdmin(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		respond(w, nil, &apiError{
			Status: http.StatusNotFound, Reason: reasonNotFound,
			Message: "This server has nothing at " + r.Method + " " + r.URL.Path,
		})
	})
	return mux
}

// serve answers a call, or makes it go wrong as it was told to.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, route route) {
	answer, lost, err := s.answer(r, route)
	s.options.Log.V(1).Info("answered", "method", route.method, "path", r.URL.Path, "error", err, "lost", lost)
	if lost {
		// It was done, and the client never hears of it.
		panic(http.ErrAbortHandler)
	}
	respond(w, answer, err)
}

func (s *Server) answer(r *http.Request, route route) (answer any, lost bool, err error) {
	if err := s.authorize(r); err != nil {
		return nil, false, err
	}
	call, err := s.read(route.method, r)
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
	answer, err = route.answer(s, call)
	return answer, call.fault.losesAnswer(), err
}
