package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/controlplane"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/monitor"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// handedOver: Stowage and kube-controller-manager take over from each other while pods run,
// and no pod notices.
func handedOver(n *namespace) {
	watched := n.watched(everyKind...)
	n.handTo(kube.InsteadOfIt)
	scenario.Step("the pods write on", watched.goOn)
	scenario.Step("new pods, claims and disks come and go", func() error { return n.comesAndGoes("under-stowage") })
	n.handTo(kube.BesideIt)
	scenario.Step("again the pods write on", watched.goOn)
	scenario.Step("again new ones come and go", func() error { return n.comesAndGoes("under-kubernetes") })
	watched.unchanged()
	scenario.Step("the pods go", watched.end)
}

// handTo installs Stowage in the other scope, in the order of
// docs/operate/hand-over.md: the component that gives way goes first.
func (n *namespace) handTo(overlay string) {
	if overlay == kube.InsteadOfIt {
		scenario.Step("kube-controller-manager's volume controllers are switched off", func() error {
			controllers, err := controlplane.StandaloneControllers()
			if err != nil {
				return err
			}
			return n.cluster.Plane.SwitchControllers(n.ctx, controllers)
		})
	}
	scenario.Step("config/"+overlay+" is applied", func() error {
		n.cluster.Overlay = overlay
		return n.cluster.Apply(n.ctx)
	})
	n.Soon("the new managers are Ready, and the old ones gone", func() error {
		return errors.Join(n.cluster.ManagersAreReady(n.ctx), n.onlyManagersOf(overlay), n.cluster.AgentsAreReady(n.ctx))
	})
	if overlay == kube.BesideIt {
		scenario.Step("what only config/standalone has goes", n.forgetStandalone)
		scenario.Step("kube-controller-manager's volume controllers are switched on", func() error {
			return n.cluster.Plane.SwitchControllers(n.ctx, controlplane.AllControllers)
		})
	}
}

// onlyManagersOf reports whether no manager is left that was started otherwise.
func (n *namespace) onlyManagersOf(overlay string) error {
	scope := map[string]string{kube.BesideIt: "--scope=classes", kube.InsteadOfIt: "--scope=cluster"}[overlay]
	all := &corev1.PodList{}
	err := n.cluster.Client.List(n.ctx, all, client.InNamespace(kube.System), client.MatchingLabels{"app.kubernetes.io/component": "manager"})
	if err != nil {
		return err
	}
	for _, pod := range all.Items {
		if argument := pod.Spec.Containers[0].Args[0]; argument != scope {
			return fmt.Errorf("manager %s is there, with %s", pod.Name, argument)
		}
	}
	return nil
}

// forgetStandalone removes what applying config/default leaves of config/standalone.
func (n *namespace) forgetStandalone() error {
	for _, left := range []string{"pod-source", "cluster-scope"} {
		folder := filepath.Join(apiserver.Repository(), "config", "rbac", left)
		all, err := kube.Run(n.ctx, "", filepath.Join(apiserver.Repository(), "bin", "kustomize"), "build", folder)
		if err == nil {
			_, err = n.cluster.Kubectl(n.ctx, all, "delete", "--filename=-")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watched are writers on both guests, with a monitor of all claims, volumes, attachments
// and mounts.
type watched struct {
	*namespace
	writers   []*writers
	monitored *monitor.Monitor
	mounts    func() error
}

// watched begins it all.
func (n *namespace) watched(classes ...string) *watched {
	w := &watched{namespace: n, writers: []*writers{n.writers("one", node1, classes...), n.writers("two", node2, classes...)}}
	scenario.Step("pods on both guests write to volumes of each kind", func() error {
		return atOnce(w.writers, (*writers).start)
	})
	scenario.Step("a monitor watches claims, volumes, attachments and mounts", w.begin)
	return w
}

func (w *watched) begin() error {
	watching, err := client.NewWithWatch(w.cluster.Config, client.Options{Scheme: w.cluster.Client.Scheme()})
	if err != nil {
		return err
	}
	if w.monitored, err = monitor.New(context.WithoutCancel(w.ctx), watching, w.isTheirs); err != nil {
		return err
	}
	w.mounts, err = w.watchMounts(w.cluster.Nodes, w.writers...)
	return err
}

// isTheirs reports whether something is to stay as it is: claims of other pods aren't.
func (w *watched) isTheirs(object client.Object) bool {
	claim, is := object.(*corev1.PersistentVolumeClaim)
	if !is {
		return true
	}
	for _, one := range append(w.writers[0].claims, w.writers[1].claims...) {
		if one.UID == claim.UID {
			return true
		}
	}
	return false
}

func (w *watched) goOn() error { return atOnce(w.writers, (*writers).goOn) }

func (w *watched) end() error { return atOnce(w.writers, (*writers).end) }

// unchanged ends the looking.
func (w *watched) unchanged() {
	scenario.Step("no claim, volume or attachment changed", func() error {
		defer w.monitored.Stop()
		return w.monitored.Check()
	})
	scenario.Step("nor any mount", func() error { return w.mounts() })
}
