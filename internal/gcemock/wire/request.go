// Package wire has the forms of requests and answers of Google's Compute API. It reads what a request
// names and holds, and filters, orders and pages lists. It has the errors, and writes the answers.
// Resources and the engine call it.
//
// It refuses parameters and fields that the mock does not serve. It never changes anything:
// it has no state.
package wire

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

	"github.com/stowage-dev/stowage/internal/gcemock/fault"
)

const (
	// BasePath is where Google serves the versions of the API, below the host.
	BasePath = "/compute/"
	stable   = "v1"
	// MaxBody is how many bytes of a body are read.
	MaxBody = 1 << 20
)

// Versions are the versions of the API. Each serves the same methods and forms: those of v1.
var Versions = []string{stable, "beta", "alpha"}

// Request is a call with its method and its project, zone or region.
type Request struct {
	*http.Request
	// MethodName is its name in Google's documentation, such as disks.insert.
	MethodName string
	// version is the version of the API that the path names; links in answers have it, too.
	version string
	// Project, zone and region are the path's; global resources have neither zone nor region.
	Project, Zone, Region string
	body                  []byte
	// Fields are those that the client wants of the answer.
	Fields selection
	// Fault is what goes wrong with it; nil for nothing.
	Fault *fault.Armed
	// IsSilent reports whether a zone is missing in aggregated lists; nil: none is.
	IsSilent func(zone string) bool
}

// Method is one of Google's methods, as the path of a call names it.
type Method struct {
	// Name is that of Google's documentation, such as disks.insert.
	Name string
	// Version is that of the API.
	Version string
	// Changes says that it starts an operation.
	Changes bool
}

// Read takes in a request, and checks that its project, zone and region exist.
func Read(r *http.Request, called Method, at Locations) (*Request, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody))
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	read := &Request{
		Request: r, MethodName: called.Name, version: called.Version, body: body,
		Project: r.PathValue("project"), Zone: r.PathValue("zone"), Region: r.PathValue("region"),
	}
	if !slices.Contains(at.Projects, read.Project) {
		return nil, NotFound(ProjectPath(read.Project))
	}
	if read.Zone != "" && !slices.Contains(at.Zones, read.Zone) {
		return nil, Invalid("zone", read.Zone, "Unknown zone.")
	}
	if read.Region != "" && !at.HasRegion(read.Region) {
		return nil, Invalid("region", read.Region, "Unknown region.")
	}
	if read.Fields, err = parseFields(r.URL.Query().Get("fields")); err != nil {
		return nil, err
	}
	return read, checkParameters(called, r.URL.Query())
}

// Into decodes the body. A field that Google doesn't know is refused, as Google does.
func (r *Request) Into(resource any) error {
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
		return &Error{
			Status: http.StatusBadRequest, Reason: "parseError",
			Message: "Invalid JSON payload received. " + err.Error(),
		}
	}
	return nil
}

// Named is the path of the resource that the URL names in one of its parts.
func (r *Request) Named(collection, part string) string {
	return r.Scope() + "/" + collection + "/" + r.PathValue(part)
}

// Scope is the path of the zone or region that the request is for, or of all that is global.
func (r *Request) Scope() string {
	switch {
	case r.Zone != "":
		return ZonePath(r.Project, r.Zone)
	case r.Region != "":
		return ProjectPath(r.Project) + "/regions/" + r.Region
	default:
		return ProjectPath(r.Project) + "/global"
	}
}

// base is what makes a path a URL at this very server, under the name by which the
// client knows it.
func (r *Request) base() string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + BasePath + r.version + "/"
}

// Link makes a path a URL; nothing stays nothing.
func (r *Request) Link(path string) string {
	if path == "" {
		return ""
	}
	return r.base() + path
}

// Links makes URLs of paths.
func (r *Request) Links(paths []string) (links []string) {
	for _, path := range paths {
		links = append(links, r.Link(path))
	}
	return links
}

// Fingerprint differs between requests that share an id by mistake.
func (r *Request) Fingerprint() string {
	query := r.URL.Query()
	query.Del("requestId")
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%s\n", r.MethodName, r.URL.Path, query.Encode())
	hash.Write(r.body)
	return hex.EncodeToString(hash.Sum(nil))
}
