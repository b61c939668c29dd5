package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/program"
)

// noClientLimit leaves it to the API server, which knows the load, to say when there
// are too many requests: a fixed rate would hold up a node whose pods all go at once.
const noClientLimit = -1

// newManager makes the controller manager. Its cache holds what belongs to this
// node and nothing else: the API server lets a node see no more.
func newManager(options *options) (ctrl.Manager, error) {
	config, err := clientConfig(options.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = noClientLimit
	scheme, err := program.Scheme()
	if err != nil {
		return nil, err
	}
	ofThisNode := cache.ByObject{Field: fields.OneTermEqualSelector("spec.nodeName", options.nodeName)}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
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
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the connection to the API server: %w", err)
	}
	return mgr, mgr.AddHealthzCheck("ping", healthz.Ping)
}

func clientConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
