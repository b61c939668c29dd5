package plugins

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// maxName is the longest name of a CSI driver, and maxPath the longest path of a socket.
const (
	maxName = 63
	maxPath = 4096
)

// driverName is a name as the CSI specification and the API have it. A folder is named after the
// driver.
var driverName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// notDriver is a folder beside those of drivers.
const notDriver = "volumeDevices"

// names are the names of drivers, each with the path of the socket that has it. Its zero value is
// usable.
type names struct {
	mu sync.Mutex
	of map[string]string
}

// check returns the driver that a socket names, or why it is refused.
func check(info *registration.PluginInfo, path string, isReserved func(string) bool) (Plugin, error) {
	name := info.GetName()
	switch {
	case info.GetType() != registration.CSIPlugin:
		return Plugin{}, fmt.Errorf("a plug-in of type %.64q registers, and only %s is served", info.GetType(), registration.CSIPlugin)
	case len(name) > maxName || !driverName.MatchString(name) || name == notDriver:
		return Plugin{}, fmt.Errorf("%.200q is no name of a CSI driver", name)
	case isReserved(name):
		return Plugin{}, fmt.Errorf("driver %s is served by this agent itself: register only drivers of other projects", name)
	}
	if _, err := version.HighestSupportedVersion(info.GetSupportedVersions()); err != nil {
		return Plugin{}, fmt.Errorf("driver %s supports no version 1.x of CSI: %w", name, err)
	}
	endpoint := info.GetEndpoint()
	if endpoint == "" {
		endpoint = path
	}
	if !filepath.IsAbs(endpoint) || len(endpoint) > maxPath {
		return Plugin{}, fmt.Errorf("the endpoint %.200q of driver %s is not the absolute path of a socket", endpoint, name)
	}
	return Plugin{Name: name, Endpoint: filepath.Clean(endpoint)}, nil
}

var errTaken = errors.New("another socket registers a driver of that name: remove one of them")

// claim gives a name to the socket at a path, unless another one has it.
func (n *names) claim(name, path string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if has, taken := n.of[name]; taken && has != path {
		return fmt.Errorf("driver %s: %w (%s)", name, errTaken, has)
	}
	if n.of == nil {
		n.of = map[string]string{}
	}
	n.of[name] = path
	return nil
}

// release gives up a name.
func (n *names) release(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of, name)
}
