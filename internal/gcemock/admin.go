package gcemock

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/stowage-dev/stowage/internal/gcemock/disks"
	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/fault"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// adminPath is where faults are made, and tags are seen, beside what Google has.
const adminPath = "/_mock/"

// latencyBody is a latency as JSON.
type latencyBody struct {
	Answer    fault.Duration `json:"answer"`
	Operation fault.Duration `json:"operation"`
}

// admin serves what only a mock has.
type admin struct {
	engine *engine.Engine
	faults *fault.Set
	token  token
}

func (s admin) route(mux *http.ServeMux) {
	for pattern, answer := range map[string]func(*http.Request) (any, error){
		"GET " + adminPath + "faults":         s.listFaults,
		"POST " + adminPath + "faults":        s.addFault,
		"DELETE " + adminPath + "faults":      s.removeFaults,
		"DELETE " + adminPath + "faults/{id}": s.removeFaults,
		"GET " + adminPath + "latency":        s.getLatency,
		"PUT " + adminPath + "latency":        s.setLatency,
		"PUT " + adminPath + "zones/{zone}":   s.setZone,
		"PUT " + adminPath + "keys":           s.setKey,
		"GET " + adminPath + "tags":           s.listTags,
		"GET " + adminPath + "healthz":        func(*http.Request) (any, error) { return map[string]string{"status": "ok"}, nil },
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			err := s.token.authorize(r)
			var body any
			if err == nil {
				body, err = answer(r)
			}
			wire.Respond(w, body, err)
		})
	}
	mux.HandleFunc("POST /token", s.token.exchange)
}

func (s admin) listFaults(*http.Request) (any, error) {
	return map[string]any{"faults": s.faults.List()}, nil
}

func (s admin) addFault(r *http.Request) (any, error) {
	text, err := io.ReadAll(io.LimitReader(r.Body, wire.MaxBody))
	if err != nil {
		return nil, err
	}
	requested, err := fault.Parse(text, methods())
	if err != nil {
		return nil, wire.Invalid("fault", string(text), err.Error())
	}
	return s.faults.Add(requested), nil
}

// removeFaults removes one fault, or all; operations that were stuck go on.
func (s admin) removeFaults(r *http.Request) (any, error) {
	id := 0
	if text := r.PathValue("id"); text != "" {
		var err error
		if id, err = strconv.Atoi(text); err != nil || id < 1 || !s.faults.Remove(id) {
			return nil, wire.NotFound("faults/" + text)
		}
		return s.listFaults(r)
	}
	s.faults.Remove(id)
	return s.listFaults(r)
}

// zoneBody is the state of a zone as JSON.
type zoneBody struct {
	Down bool `json:"down"`
	// Silent is one that can't be read either. It is for one that is down.
	Silent bool `json:"silent,omitempty"`
}

// setZone takes a zone down, in which nothing can be changed then, or up again.
func (s admin) setZone(r *http.Request) (any, error) {
	var requested zoneBody
	if err := json.NewDecoder(io.LimitReader(r.Body, wire.MaxBody)).Decode(&requested); err != nil {
		return nil, wire.Invalid("zone", "", err.Error())
	}
	if requested.Silent && !requested.Down {
		return nil, wire.Invalid("silent", "true", "It is for a zone that is down.")
	}
	if requested.Silent {
		s.faults.SetSilent(r.PathValue("zone"))
	} else {
		s.faults.SetDown(r.PathValue("zone"), requested.Down)
	}
	return requested, nil
}

// setKey sets the state of a key of Cloud KMS.
func (s admin) setKey(r *http.Request) (any, error) {
	var requested struct{ Name, State string }
	if err := json.NewDecoder(io.LimitReader(r.Body, wire.MaxBody)).Decode(&requested); err != nil {
		return nil, wire.Invalid("key", "", err.Error())
	}
	if !slices.Contains([]string{"ENABLED", "DISABLED", "DESTROYED", fault.KeyDenied}, requested.State) {
		return nil, wire.Invalid("state", requested.State, "It is no state of a key.")
	}
	s.faults.SetKey(requested.Name, requested.State)
	return requested, nil
}

// listTags shows the tags of disks, by their paths.
func (s admin) listTags(*http.Request) (any, error) {
	return map[string]any{"tags": disks.Tags(s.engine)}, nil
}

func (s admin) getLatency(*http.Request) (any, error) {
	now := s.faults.Latency()
	return latencyBody{Answer: fault.Duration(now.Answer), Operation: fault.Duration(now.Operation)}, nil
}

func (s admin) setLatency(r *http.Request) (any, error) {
	var requested latencyBody
	if err := json.NewDecoder(io.LimitReader(r.Body, wire.MaxBody)).Decode(&requested); err != nil {
		return nil, wire.Invalid("latency", "", err.Error())
	}
	s.faults.SetLatency(fault.Latency{Answer: time.Duration(requested.Answer), Operation: time.Duration(requested.Operation)})
	return s.getLatency(r)
}
