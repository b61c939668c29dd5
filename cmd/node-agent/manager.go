package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/program"
)

// newManager makes the controller manager. Its cache holds what belongs to this
// node and nothing else: the API server lets a node see no more.
func newManager(options *options) (ctrl.Manager, error) {
	connection, err := options.Config()
	if err != nil {
		return nil, err
	}
	// Pods that go at once are listed again and again.
	connection.DisableCompression = true
	scheme, err := program.Scheme()
	if err != nil {
		return nil, err
	}
	ofThisNode := cache.ByObject{Field: fields.OneTermEqualSelector("spec.nodeName", options.nodeName)}
	pace := event.NewPace()
	pace.Apply(connection)
	mgr, err := ctrl.NewManager(connection, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: ofThisNode,
			// For what the manager says is attached to it.
			&corev1.Node{}:                   {Field: fields.OneTermEqualSelector("metadata.name", options.nodeName)},
			&stowagev1alpha1.NodeVolume{}:    ofThisNode,
			&stowagev1alpha1.NodeDisk{}:      ofThisNode,
			&stowagev1alpha1.NodeRecycling{}: ofThisNode,
		}},
		Logger:                 program.Quiet(ctrl.Log),
		Metrics:                options.Metrics(),
		HealthProbeBindAddress: options.ProbeAddress,
		PprofBindAddress:       options.PprofAddress,
		Controller:             config.Controller{GroupKindConcurrency: options.Workers},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the connection to the API server: %w", err)
	}
	return mgr, errors.Join(mgr.Add(pace), mgr.AddHealthzCheck("ping", healthz.Ping))
}
