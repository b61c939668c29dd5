package sanity_test

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce"
	"github.com/stowage-dev/stowage/internal/backend/local"
	"github.com/stowage-dev/stowage/internal/backend/nfs"
	"github.com/stowage-dev/stowage/internal/csicontroller"
	"github.com/stowage-dev/stowage/internal/program"
)

// served is a StorageBackend that is served by CSI.
type served struct {
	*csicontroller.Service
	client  client.Client
	backend backend.Backend
}

// open opens a suite's backend as the manager does.
func open(ctx context.Context, p Plan) (*served, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme, err := program.Scheme()
	if err != nil {
		return nil, err
	}
	s := &served{}
	if s.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	cluster, object := &corev1.Namespace{}, &stowagev1alpha1.StorageBackend{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, cluster); err != nil {
		return nil, fmt.Errorf("finding out which cluster this is: %w", err)
	}
	if err := s.client.Get(ctx, client.ObjectKey{Name: p.Subject.Backend}, object); err != nil {
		return nil, err
	}
	kinds := backend.NewRegistry(nfs.NewKind(cluster.UID, ""), gce.NewKind(cluster.UID, noKeys{}),
		local.NewKind(s.client, s.client, p.Base))
	s.Service = csicontroller.New(csicontroller.Options{
		Name: p.Subject.Backend, Driver: p.Subject.Driver, Cluster: cluster.UID, Live: s.client, VolumesOf: noVolumes, Backends: kinds, Version: "test",
	})
	s.backend, err = kinds.Open(object)
	return s, err
}

// noVolumes: the suites make no PersistentVolumes.
func noVolumes(context.Context, string, string) ([]corev1.PersistentVolume, error) { return nil, nil }

// held are the ids of the volumes and snapshots that the backend holds, in order.
func (s *served) held(ctx context.Context) (ids []string, err error) {
	for after := ""; ; {
		page, next, err := backend.ListAfter(ctx, s.backend, after)
		if err != nil {
			return nil, err
		}
		for _, one := range page {
			ids = append(ids, one.ID)
		}
		if next == "" {
			slices.Sort(ids)
			return ids, nil
		}
		after = next
	}
}

// noKeys has no service account keys: gce-mock asks for no sign-in.
type noKeys struct{}

// Key reports that there is none.
func (noKeys) Key(context.Context, string) (key []byte, version string, err error) {
	return nil, "", backend.Unavailable.Errorf("there are no keys")
}
