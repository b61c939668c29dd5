package gcemock

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

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
		{"projects.get", "GET ", getProject},
		{"regions.list", "GET regions", listRegions},
		{"regions.get", "GET regions/{name}", getRegion},
		{"zones.list", "GET zones", listZones},
		{"zones.get", "GET zones/{zone}", getZone},
	}
}

// jobs makes an empty job of each method that changes something.
func jobs() map[string]func() job {
	all := diskJobs()
	maps.Copy(all, copyJobs())
	maps.Copy(all, instanceJobs())
	return all
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
