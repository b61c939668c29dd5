package csi

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// interfaceVersion is the first and only version of the interface, as kubelets know it.
const interfaceVersion = "1.0.0"

// registration answers a kubelet that found the socket of a driver's registration.
type registration struct {
	registerapi.UnimplementedRegistrationServer
	driver, endpoint string
	log              logr.Logger

	mu    sync.Mutex
	state error
}

func newRegistration(driver, endpoint string, log logr.Logger) *registration {
	waiting := fmt.Errorf("waiting for the kubelet to register %s", driver)
	return &registration{driver: driver, endpoint: endpoint, log: log, state: waiting}
}

// GetInfo implements registerapi.RegistrationServer.
func (r *registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type: registerapi.CSIPlugin, Name: r.driver, Endpoint: r.endpoint, SupportedVersions: []string{interfaceVersion},
	}, nil
}

// NotifyRegistrationStatus implements registerapi.RegistrationServer. A kubelet that
// refused tries again by itself.
func (r *registration) NotifyRegistrationStatus(_ context.Context, status *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if status.GetPluginRegistered() {
		if r.state != nil {
			r.log.Info("the kubelet registered the driver")
		}
		r.state = nil
		return &registerapi.RegistrationStatusResponse{}, nil
	}
	refused := errors.New(status.GetError())
	r.log.Error(refused, "the kubelet didn't register the driver")
	r.state = fmt.Errorf("the kubelet didn't register %s: %w", r.driver, refused)
	return &registerapi.RegistrationStatusResponse{}, nil
}

// check returns why the kubelet doesn't have the driver; nil if it does.
func (r *registration) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}
