package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/owned"
)

const noClientLimit = -1

// testbed is an API server that holds nothing between rounds, and the programs that are
// measured with it.
type testbed struct {
	// ctx is that of the one run of this program: everything ends with it.
	ctx        context.Context
	options    options
	report     *report
	server     *apiserver.Server
	client     client.WithWatch
	raw        rest.Interface
	self       string
	dir        string
	kubeconfig string
	// written is what the first program in each case of a benchmark wrote.
	written map[string]writtenBy
}

// newTestbed starts an API server. All clients are members of system:masters: their
// requests are exempt from priority and fairness, whose limits are not to be measured.
func newTestbed(ctx context.Context, o options, report *report) (*testbed, error) {
	dir, err := owned.Folder("bench")
	if err != nil {
		return nil, fmt.Errorf("making a folder for logs: %w", err)
	}
	b := &testbed{ctx: ctx, options: o, report: report, dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"), written: map[string]writtenBy{}}
	if err := b.startServer(); err != nil {
		return nil, errors.Join(err, b.stop())
	}
	return b, nil
}

func (b *testbed) startServer() (err error) {
	if b.self, err = os.Executable(); err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	if b.server, err = apiserver.Start(apiserver.Options{WatchCache: true}); err != nil {
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
	if b.client, err = cluster.NewClient(config); err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	b.raw = clientset.RESTClient()
	return nil
}

func (b *testbed) stop() error {
	return errors.Join(b.server.Stop(), os.RemoveAll(b.dir))
}

func takeTurns(rounds int, measure func(contender) error, contenders ...contender) error {
	for range rounds {
		for _, c := range contenders {
			if err := measure(c); err != nil {
				return fmt.Errorf("program %s: %w", c.name, err)
			}
		}
	}
	return nil
}
