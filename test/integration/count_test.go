package integration_test

import (
	"net/http"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// writes counts what the manager wrote to claims and volumes, refused or not.
var writes atomic.Int64

// counted is a client configuration whose writes are counted.
func counted(config *rest.Config) *rest.Config {
	counting := rest.CopyConfig(config)
	counting.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next} })
	return counting
}

type counter struct{ next http.RoundTripper }

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && strings.Contains(request.URL.Path, "/persistentvolume") {
		writes.Add(1)
	}
	return c.next.RoundTrip(request)
}
