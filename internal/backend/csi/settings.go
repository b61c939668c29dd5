package csi

import (
	"cmp"
	"strings"
	"time"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
	"github.com/stowage-dev/stowage/internal/backend/csi/secured"
)

const (
	// defaultTimeout bounds a call, if the spec doesn't.
	defaultTimeout = 15 * time.Second
	unixScheme     = "unix://"
	tcpScheme      = secured.TCPScheme
)

// settings are the spec of a backend, checked.
type settings struct {
	stowagev1alpha1.CSIBackend
	// backend is the name of the StorageBackend.
	backend string
	// target is the endpoint, as gRPC names it.
	target string
	driver calling.Driver
}

func settingsFrom(object *stowagev1alpha1.StorageBackend) (settings, error) {
	spec := settings{CSIBackend: *object.Spec.CSI, backend: object.Name}
	spec.driver = calling.Driver{Name: spec.Driver, Endpoint: spec.Endpoint, Timeout: cmp.Or(spec.Timeout.Duration, defaultTimeout)}
	if object.Name != spec.Driver {
		return spec, backend.Invalid.Errorf("the name of a StorageBackend with csi must be the driver's: create one with the name %q", spec.Driver)
	}
	path, isSocket := strings.CutPrefix(spec.Endpoint, unixScheme)
	address, isTCP := strings.CutPrefix(spec.Endpoint, tcpScheme)
	switch {
	case isSocket && strings.HasPrefix(path, "/"):
		spec.target = "unix:" + path
	case isTCP && spec.TLSSecret != nil:
		spec.target = "dns:///" + address
	case isTCP:
		return spec, backend.Invalid.Errorf("csi.endpoint %s needs csi.tlsSecret: calls carry secrets", spec.Endpoint)
	default:
		return spec, backend.Invalid.Errorf("csi.endpoint %q is neither a socket such as unix:///csi/csi.sock nor an address such as tcp://driver.example.com:10000", spec.Endpoint)
	}
	return spec, nil
}

// secrets are the Secrets that the manager's own calls carry.
func (s settings) secrets() []*stowagev1alpha1.SecretReference {
	return []*stowagev1alpha1.SecretReference{s.Secrets.Provision, s.Secrets.ControllerPublish, s.Secrets.ControllerExpand, s.Secrets.ControllerModify}
}

// modifySecret is the Secret of ControllerModifyVolume.
func (s settings) modifySecret() *stowagev1alpha1.SecretReference {
	return cmp.Or(s.Secrets.ControllerModify, s.Secrets.ControllerExpand)
}
