package transport

import (
	"net/url"
	"strings"

	"github.com/stowage-dev/stowage/internal/backend"
)

// BasePath is where Google serves the API, below the host.
const BasePath = "/compute/v1/"

// EndpointOf returns an endpoint to which paths can be appended.
func EndpointOf(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	endpoint, err := url.Parse(text)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http" ||
		endpoint.User != nil || endpoint.RawQuery != "" || endpoint.Fragment != "" {
		return "", backend.Invalid.Errorf("gce.endpoint %q is no URL of a Compute API: it is to be like https://compute.example.com%s", text, BasePath)
	}
	if strings.Trim(endpoint.Path, "/") == "" {
		endpoint.Path = BasePath
	}
	return strings.TrimSuffix(endpoint.String(), "/") + "/", nil
}
