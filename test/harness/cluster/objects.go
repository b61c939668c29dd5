package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// Kubectl is a kubectl command of the administrator.
func (c *Cluster) Kubectl(ctx context.Context, arguments ...string) (*exec.Cmd, error) {
	kubectl, err := apiserver.Binary("kubectl")
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, kubectl, arguments...)
	command.Env = append(command.Environ(), "KUBECONFIG="+c.Folder.Kubeconfig(AdminUser))
	return command, nil
}

// applyConfig takes over fields that were changed by hand: after an update of Stowage
// its own objects are as this version wants them.
func (c *Cluster) applyConfig(ctx context.Context) error {
	config := filepath.Join(c.repository, "config", "run")
	err := c.Run(ctx, "apply", "--server-side", "--force-conflicts", "-k", config)
	if err == nil {
		err = c.Run(ctx, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
	}
	return err
}

// Run runs a kubectl command of the administrator. Its output is in the error.
func (c *Cluster) Run(ctx context.Context, arguments ...string) error {
	kubectl, err := c.Kubectl(ctx, arguments...)
	if err != nil {
		return err
	}
	if output, err := kubectl.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w:\n%s", arguments[0], err, output)
	}
	return nil
}

func (c *Cluster) registerNodes(ctx context.Context) error {
	for _, name := range c.nodes {
		if err := c.registerNode(ctx, name); err != nil {
			return fmt.Errorf("registering node %s: %w", name, err)
		}
	}
	return nil
}

// registerNode does what a kubelet does first.
func (c *Cluster) registerNode(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := controllerutil.CreateOrPatch(ctx, c.Client, node, func() error {
		metav1.SetMetaDataLabel(&node.ObjectMeta, stowagev1alpha1.TopologyNodeLabel, name)
		metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelHostname, name)
		metav1.SetMetaDataLabel(&node.ObjectMeta, corev1.LabelOSStable, "linux")
		if c.register != nil {
			c.register(node)
		}
		return nil
	})
	if err != nil {
		return err
	}
	before, now := node.DeepCopy(), metav1.Now()
	node.Status = corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Registered", Message: "registered by hand: there is no kubelet",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}}
	return c.Client.Status().Patch(ctx, node, client.MergeFrom(before))
}
