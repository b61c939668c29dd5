// Package guard starts the node manager only on a node without a kubelet: both would mount and
// unmount the same volumes.
package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// guardRetry is how soon an unknown node is checked again, and guardInterval how often a node
	// without a kubelet is: it may get one.
	guardRetry    = 2 * time.Second
	guardInterval = time.Minute
	// freshLease is the oldest heartbeat of a live kubelet: kubelets renew every 10 s, and are
	// NotReady after 40 s without.
	freshLease = 40 * time.Second
)

// ErrKubelet means: the node has a kubelet, which mounts the pods' volumes.
var ErrKubelet = errors.New("this node has a kubelet")

// errUnknownNode: whether the node has a kubelet isn't known yet.
var errUnknownNode = errors.New("the node isn't registered")

// Guard starts the node manager only where no kubelet mounts the same pods' volumes: the two would
// unmount each other's, and delete pods too early. It is a runnable of the agent's controller
// manager, and stops that with an error if the node gets a kubelet.
type Guard struct {
	// NodeName is the node that is checked.
	NodeName string
	// Live reads from the API server itself.
	Live client.Reader
	// Clock measures the age of heartbeats.
	Clock clock.PassiveClock
	// Begin is called once the node is known to have no kubelet.
	Begin func() error

	begun atomic.Bool
}

// Start implements manager.Runnable.
func (g *Guard) Start(ctx context.Context) error {
	logged := ""
	for {
		next := guardInterval
		err := g.check(ctx)
		switch {
		case errors.Is(err, ErrKubelet):
			return err
		case err != nil:
			next = guardRetry
			if logged != err.Error() {
				logged = err.Error()
				logf.FromContext(ctx).Error(err, "waiting to follow pods")
			}
		case !g.begun.Load():
			if err := g.begin(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}

// begin calls Begin, after which the guard is ready. It doesn't wait for a Begin that hangs because
// the manager stops: a stopping manager takes no runnables, and returns no error for them.
func (g *Guard) begin(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- g.Begin() }()
	select {
	case err := <-done:
		if err == nil {
			g.begun.Store(true)
		}
		return err
	case <-ctx.Done():
		return nil
	}
}

// Ready is a readiness check: it fails until pods are followed.
func (g *Guard) Ready(*http.Request) error {
	if !g.begun.Load() {
		return fmt.Errorf("not following pods yet: node %s isn't known, or wasn't checked", g.NodeName)
	}
	return nil
}

// check returns ErrKubelet if the node has a kubelet, and another error if that isn't known.
func (g *Guard) check(ctx context.Context) error {
	node := &corev1.Node{}
	err := g.Live.Get(ctx, client.ObjectKey{Name: g.NodeName}, node)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("node %s: %w: create a Node object of that name, with label topology.stowage.dev/node=%s, or correct --node-name",
			g.NodeName, errUnknownNode, g.NodeName)
	}
	if err != nil {
		return fmt.Errorf("reading node %s: %w", g.NodeName, err)
	}
	lease := &coordinationv1.Lease{}
	err = g.Live.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: g.NodeName}, lease)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the heartbeat of node %s: %w", g.NodeName, err)
	}
	return judge(node, lease, g.Clock.Now())
}

// judge returns ErrKubelet if a node has a kubelet. Each sign counts. The version is written when
// a kubelet registers, and stays when it stops. A heartbeat is the sign of a kubelet that uses a
// Node object which it didn't create.
func judge(node *corev1.Node, lease *coordinationv1.Lease, now time.Time) error {
	const advice = "run the agent without --follow-pods there: the kubelet mounts the volumes"
	if version := node.Status.NodeInfo.KubeletVersion; version != "" {
		return fmt.Errorf("node %s: %w (status.nodeInfo.kubeletVersion is %s): %s", node.Name, ErrKubelet, version, advice)
	}
	if renewed := lease.Spec.RenewTime; renewed != nil && now.Sub(renewed.Time) < freshLease {
		return fmt.Errorf("node %s: %w (its lease in %s was renewed at %s): %s",
			node.Name, ErrKubelet, corev1.NamespaceNodeLease, renewed.Format(time.RFC3339), advice)
	}
	return nil
}
