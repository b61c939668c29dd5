package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/test/apiserver"
)

// testbed is an API server that holds nothing between rounds, and the programs
// that are let loose on it.
type testbed struct {
	// ctx is that of the one run of this program: everything ends with it.
	ctx    context.Context
	server *apiserver.Server
	client client.WithWatch
	// raw reads the API server's metrics.
	raw rest.Interface
	// dir holds the logs and the kubeconfig of what is measured.
	dir        string
	kubeconfig string
	// subject is what is measured; bare is what it is compared with.
	subject, bare contender
	// starting is what CPU time a program takes to start, by its name.
	starting map[string]time.Duration
}

// newTestbed starts an API server. Everybody is a member of system:masters:
// such requests are exempt from priority and fairness, so that no limit of the
// API server is what is measured.
func newTestbed(ctx context.Context, o options) (*testbed, error) {
	dir, err := os.MkdirTemp("", "stowage-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for logs: %w", err)
	}
	bed := &testbed{ctx: ctx, dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"), starting: map[string]time.Duration{}}
	if err := bed.start(o); err != nil {
		return nil, errors.Join(err, bed.stop())
	}
	return bed, nil
}

func (b *testbed) start(o options) (err error) {
	if b.server, err = apiserver.Start(apiserver.Options{}); err != nil {
		return err
	}
	kubeconfig, err := b.server.Kubeconfig("bench", "system:masters")
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.kubeconfig, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	config := rest.CopyConfig(b.server.Config)
	config.QPS = noClientLimit
	if b.client, err = newClient(config); err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	b.raw = clientset.RESTClient()
	b.subject, b.bare, err = contenders(b.dir, b.kubeconfig, o)
	return err
}

func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := program.Scheme()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

func (b *testbed) stop() error {
	var err error
	if b.server != nil {
		err = b.server.Stop()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}
