// Package cluster is how the verbs of kubectl stowage reach a cluster. It has the flags of kubectl,
// one client, reads that are bounded and paginated, and the names that shells complete.
//
// The verbs call it. It never writes.
package cluster

import (
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const (
	// requestTimeout bounds each request for which the user set no --request-timeout.
	requestTimeout = 30 * time.Second
	// Requests per second, and at once: a command for a person reads few pages.
	queriesPerSecond, burst = 50, 100
)

// Cluster is the cluster of one command, and the terminal of its user. Tests set Open.
type Cluster struct {
	Flags   *genericclioptions.ConfigFlags
	Streams genericiooptions.IOStreams
	Clock   clock.PassiveClock
	// Open returns a client. Default: one of the kubeconfig.
	Open func() (client.Client, error)
	// MostObjects bounds each list.
	MostObjects int64

	opened client.Client
}

// New returns the cluster of the kubeconfig and its flags.
func New(streams genericiooptions.IOStreams) *Cluster {
	c := &Cluster{Flags: genericclioptions.NewConfigFlags(true), Streams: streams, Clock: clock.RealClock{}, MostObjects: 20_000}
	c.Open = func() (client.Client, error) {
		config, err := c.Config()
		if err != nil {
			return nil, err
		}
		scheme, err := Scheme()
		if err != nil {
			return nil, err
		}
		return client.New(config, client.Options{Scheme: scheme})
	}
	return c
}

// Scheme knows the kinds of Kubernetes, of snapshots and of Stowage.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, snapshotv1.AddToScheme, stowagev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	return scheme, nil
}

// AddFlags adds the flags of kubectl, and the bound of lists.
func (c *Cluster) AddFlags(flags *pflag.FlagSet) {
	c.Flags.AddFlags(flags)
	flags.Int64Var(&c.MostObjects, "max-objects", c.MostObjects, "How many objects of a kind are read at most.")
}

// Config is the client configuration of the kubeconfig and the flags.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := c.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w: check --kubeconfig, --context and $KUBECONFIG", err)
	}
	config.QPS, config.Burst = queriesPerSecond, burst
	if config.Timeout == 0 {
		config.Timeout = requestTimeout
	}
	return config, nil
}

// Client returns the client, opened once.
func (c *Cluster) Client() (client.Client, error) {
	if c.opened != nil {
		return c.opened, nil
	}
	opened, err := c.Open()
	if err != nil {
		return nil, err
	}
	c.opened = opened
	return opened, nil
}

// Namespace is that of --namespace, or of the kubeconfig's context.
func (c *Cluster) Namespace() (string, error) {
	namespace, _, err := c.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the namespace of the kubeconfig: %w", err)
	}
	return namespace, nil
}
