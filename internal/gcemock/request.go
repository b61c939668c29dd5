package gcemock

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

const (
	// basePath is where Google serves the versions of the API, below the host.
	basePath = "/compute/"
	stable   = "v1"
	maxBody  = 1 << 20
)

// versions are the versions of the API. Each serves the same methods and forms: those of v1.
var versions = []string{stable, "beta", "alpha"}

// request is a call: whom it is for, and how to say where things are.
type request struct {
	*http.Request
	// method is its name in Google's documentation, such as disks.insert.
	method string
	// version is the version of the API that the path names; links in answers have it, too.
	version string
	// project, zone and region are the path's; global resources have neither zone nor region.
	project, zone, region string
	body                  []byte
	// fields are those that the client wants of the answer.
	fields selection
	// fault is what goes wrong with it; nil for nothing.
	fault *fault
}

// method is one of Google's methods, as the path of a call names it.
type method struct {
	// name is that of Google's documentation, such as disks.insert.
	name string
	// version is that of the API.
	version string
	// changes says that it starts an operation.
	changes bool
}

// read takes in a request, and checks that its project, zone and region exist.
func read(r *http.Request, called method, at places) (*request, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	read := &request{
		Request: r, method: called.name, version: called.version, body: body,
		project: r.PathValue("project"), zone: r.PathValue("zone"), region: r.PathValue("region"),
	}
	if !slices.Contains(at.Projects, read.project) {
		return nil, errNotFound(projectPath(read.project))
	}
	if read.zone != "" && !slices.Contains(at.Zones, read.zone) {
		return nil, errInvalid("zone", read.zone, "Unknown zone.")
	}
	if read.region != "" && !at.hasRegion(read.region) {
		return nil, errInvalid("region", read.region, "Unknown region.")
	}
	if read.fields, err = parseFields(r.URL.Query().Get("fields")); err != nil {
		return nil, err
	}
	return read, checkParameters(called, r.URL.Query())
}

// into decodes the body. A field that Google doesn't know is refused, as Google does.
func (r *request) into(resource any) error {
	if len(r.body) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(resource)
	if err == nil && decoder.More() {
		err = errors.New("there is more after the object")
	}
	if err != nil {
		return &apiError{
			Status: http.StatusBadRequest, Reason: "parseError",
			Message: "Invalid JSON payload received. " + err.Error(),
		}
	}
	return nil
}

// named is the path of the resource that the URL names in one of its parts.
func (r *request) named(collection, part string) string {
	return r.scope() + "/" + collection + "/" + r.PathValue(part)
}

// scope is the path of the zone or region that the request is for, or of all that is global.
func (r *request) scope() string {
	switch {
	case r.zone != "":
		return zonePath(r.project, r.zone)
	case r.region != "":
		return projectPath(r.project) + "/regions/" + r.region
	default:
		return projectPath(r.project) + "/global"
	}
}

// base is what makes a path a URL at this very server, under the name by which the
// client knows it.
func (r *request) base() string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + basePath + r.version + "/"
}

// link makes a path a URL; nothing stays nothing.
func (r *request) link(path string) string {
	if path == "" {
		return ""
	}
	return r.base() + path
}

func (r *request) links(paths []string) (links []string) {
	for _, path := range paths {
		links = append(links, r.link(path))
	}
	return links
}

// fingerprint tells requests apart that carry the same id.
func (r *request) fingerprint() string {
	query := r.URL.Query()
	query.Del("requestId")
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%s\n", r.method, r.URL.Path, query.Encode())
	hash.Write(r.body)
	return hex.EncodeToString(hash.Sum(nil))
}
