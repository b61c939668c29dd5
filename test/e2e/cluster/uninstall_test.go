package cluster_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/kube"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// uninstalled: without Stowage its volumes stay, with their data and the pods that use them.
// Installed again, it goes on with them.
func uninstalled(n *namespace) {
	leaving, coming := n.writers("leaves", node1, directories, images, shared), n.writers("comes", node1, everyKind...)
	scenario.Step("pods come that are to leave", leaving.createAll)
	watched := n.watched(everyKind...)
	scenario.Step("those that are to leave write, too", leaving.begun)
	scenario.Step("Stowage is removed, with make undeploy", n.undeploy)
	n.Soon("no program, role or driver of it is left", n.isRemoved)
	scenario.Step("StorageBackends, and what knows the volumes, are there", n.storageStays)
	scenario.Step("the pods write on", watched.goOn)
	scenario.Step("some of them are deleted, and some are created", func() error { return n.changeWhileAway(leaving, coming) })
	scenario.Step("it is installed again", func() error { return n.cluster.Apply(n.ctx) })
	n.Soon("managers and agents are Ready", func() error {
		return errors.Join(n.cluster.ManagersAreReady(n.ctx), n.cluster.AgentsAreReady(n.ctx), n.cluster.AllHaveDrivers(n.ctx), n.cluster.BackendsAreReady(n.ctx))
	})
	scenario.Step("the new pods run, with new volumes", coming.begun)
	scenario.Step("those that were deleted are gone, and their volumes are nowhere on the node", leaving.end)
	scenario.Step("the others write on", watched.goOn)
	watched.unchanged()
	scenario.Step("all pods go", func() error { return errors.Join(coming.end(), watched.end()) })
	again := n.pod("again", on(node1), with(watched.writers[0].claims[3].Name))
	scenario.Step("a new one finds what was written before", func() error {
		return errors.Join(n.launch(again), n.says(again.Name, "head -n 1 /data/lines", "1"))
	})
}

// undeploy removes Stowage as docs/upgrade.md says.
func (n *namespace) undeploy() error {
	kubectl, err := apiserver.Binary("kubectl")
	if err == nil {
		_, err = kube.Run(n.ctx, "", "make", "--directory="+apiserver.Repository(), "undeploy",
			"OVERLAY="+n.cluster.OverlayFolder(), "KUBECTL="+kubectl+" --kubeconfig="+n.cluster.Kubeconfig())
	}
	return err
}

// removedKinds are those of which nothing of Stowage's is to be left.
const removedKinds = "namespaces,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,csidrivers"

func (n *namespace) isRemoved() error {
	left, err := n.cluster.Kubectl(n.ctx, "", "get", removedKinds, "--output=name")
	if err != nil {
		return err
	}
	var ours []string
	for _, name := range strings.Fields(left) {
		if strings.Contains(name, "stowage") {
			ours = append(ours, name)
		}
	}
	if len(ours) > 0 {
		return fmt.Errorf("left is %q", ours)
	}
	return nil
}

// storageStays checks that what users and administrators made is there. Claims and
// volumes are those that the monitor knows.
func (n *namespace) storageStays() error {
	problems := []error{}
	for _, backend := range n.cluster.Backends() {
		problems = append(problems, n.get(backend))
	}
	volumes, err := n.volumes()
	if err != nil {
		return err
	}
	for _, volume := range volumes {
		if volume.Spec.CSI.Driver != stowagev1alpha1.LocalDriver {
			continue
		}
		local := &stowagev1alpha1.NodeVolume{}
		local.Name = volume.Spec.CSI.VolumeHandle
		problems = append(problems, n.get(local))
		if local.DeletionTimestamp != nil {
			problems = append(problems, fmt.Errorf("NodeVolume %s is being deleted", local.Name))
		}
	}
	return errors.Join(problems...)
}

// changeWhileAway deletes pods and creates others while Stowage is away.
func (n *namespace) changeWhileAway(leaving, coming *writers) error {
	var problems []error
	for _, pod := range leaving.pods {
		problems = append(problems, n.cluster.Client.Delete(n.ctx, pod))
	}
	return errors.Join(append(problems, coming.createAll())...)
}

// volumes are those of all claims of the spec.
func (n *namespace) volumes() ([]corev1.PersistentVolume, error) {
	all := &corev1.PersistentVolumeList{}
	if err := n.cluster.Client.List(n.ctx, all); err != nil {
		return nil, err
	}
	mine := slices.DeleteFunc(all.Items, func(volume corev1.PersistentVolume) bool {
		return volume.Spec.CSI == nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.Namespace != n.name
	})
	return mine, nil
}
