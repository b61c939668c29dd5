package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager"
	"github.com/stowage-dev/stowage/internal/nodemanager/localvolume"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/hostpath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/local"
)

// eventSource is who events come from.
const eventSource = "stowage-node-agent"

// newManager makes the controller manager. Its cache holds what belongs to this
// node and nothing else: the API server lets a node see no more.
func newManager(options *options) (ctrl.Manager, error) {
	config, err := clientConfig(options.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	types := runtime.NewScheme()
	if err := scheme.AddToScheme(types); err != nil {
		return nil, err
	}
	if err := stowagev1alpha1.AddToScheme(types); err != nil {
		return nil, err
	}
	ofThisNode := cache.ByObject{Field: fields.OneTermEqualSelector("spec.nodeName", options.nodeName)}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: types,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                  ofThisNode,
			&stowagev1alpha1.LocalVolume{}: ofThisNode,
		}},
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

// addControllers adds what the agent does to its manager.
func addControllers(ctx context.Context, mgr ctrl.Manager, options *options) error {
	localVolumes := localvolume.NewReconciler(localvolume.Options{
		NodeName: options.nodeName,
		Store:    &localvolume.Store{Base: options.localBase},
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Events:   mgr.GetEventRecorder(eventSource),
	})
	if err := localVolumes.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up local volumes: %w", err)
	}
	if !options.followPods {
		return mgr.AddReadyzCheck("ping", healthz.Ping)
	}
	return followPods(ctx, mgr, options)
}

// followPods adds the node manager, which begins once the guard lets it.
func followPods(ctx context.Context, mgr ctrl.Manager, options *options) error {
	if err := nodemanager.IndexPods(ctx, mgr); err != nil {
		return err
	}
	tree, err := nodemanager.NewTree(options.rootDir)
	if err != nil {
		return err
	}
	pods := nodemanager.NewReconciler(nodemanager.Options{
		NodeName: options.nodeName,
		Tree:     tree,
		Volumes:  volumeTypes(options),
		Mounter:  mount.Kernel{},
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Events:   mgr.GetEventRecorder(eventSource),
		Clock:    clock.RealClock{},
	})
	guard := &nodemanager.Guard{
		NodeName: options.nodeName,
		Live:     mgr.GetAPIReader(),
		Clock:    clock.RealClock{},
		Begin:    func() error { return pods.SetupWithManager(mgr) },
	}
	if err := mgr.AddReadyzCheck("follow-pods", guard.Ready); err != nil {
		return err
	}
	return mgr.Add(guard)
}

// volumeTypes is the list of what this agent can mount.
func volumeTypes(options *options) volumes.Registry {
	mounter := mount.Kernel{}
	return volumes.Registry{
		csi.New(mounter, map[string]csi.Driver{
			stowagev1alpha1.LocalDriver: csi.LocalDriver{Base: options.localBase},
		}),
		hostpath.New(mounter),
		local.New(mounter),
		emptydir.New(mounter),
	}
}
