package doctor

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
)

// Labels of Stowage's own objects, and of kube-controller-manager's static pods.
var (
	stowage           = client.MatchingLabels{"app.kubernetes.io/name": "stowage"}
	controllerManager = client.MatchingLabels{"component": "kube-controller-manager"}
)

// usualNamespace is the one in which config/default installs Stowage.
const usualNamespace = "stowage-system"

// read reads what the checks look at.
func read(ctx context.Context, c *cluster.Cluster) (*objects, error) {
	managers, agents, pods := &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}, &corev1.PodList{}
	nodes, csiNodes, drivers := &corev1.NodeList{}, &storagev1.CSINodeList{}, &storagev1.CSIDriverList{}
	classes, backends := &storagev1.StorageClassList{}, &stowagev1alpha1.StorageBackendList{}
	leases, others := &coordinationv1.LeaseList{}, &corev1.PodList{}
	for _, read := range []struct {
		list    client.ObjectList
		options []client.ListOption
	}{
		{managers, []client.ListOption{stowage, component("manager")}},
		{agents, []client.ListOption{stowage, component("node-agent")}},
		{pods, []client.ListOption{stowage}},
		{nodes, nil},
		{csiNodes, nil},
		{drivers, nil},
		{classes, nil},
		{backends, nil},
		{leases, []client.ListOption{client.InNamespace(corev1.NamespaceNodeLease)}},
		{others, []client.ListOption{client.InNamespace("kube-system"), controllerManager}},
	} {
		if err := c.List(ctx, read.list, read.options...); err != nil {
			return nil, err
		}
	}
	o := &objects{
		managers: managers.Items, agents: agents.Items, pods: pods.Items, nodes: nodes.Items, csiNodes: csiNodes.Items, drivers: drivers.Items,
		classes: classes.Items, backends: backends.Items, leases: leases.Items, controllers: flagsOf(others.Items), now: c.Clock.Now(),
	}
	// A manager outside the cluster has no Deployment, and its lease in the usual namespace.
	namespaces := map[string]bool{usualNamespace: len(o.managers) == 0}
	for i := range o.managers {
		namespaces[o.managers[i].Namespace] = true
	}
	for namespace, has := range namespaces {
		lead := &coordinationv1.LeaseList{}
		if !has {
			continue
		}
		if err := c.List(ctx, lead, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		o.lead = append(o.lead, lead.Items...)
	}
	return o, askRights(ctx, c, o)
}

func component(name string) client.MatchingLabels {
	return client.MatchingLabels{"app.kubernetes.io/component": name}
}

// flagsOf are the --controllers flags of kube-controller-managers; "" for one without.
func flagsOf(pods []corev1.Pod) (flags []string) {
	for i := range pods {
		for _, container := range pods[i].Spec.Containers {
			arguments := slices.Concat(container.Command, container.Args)
			at := slices.IndexFunc(arguments, func(argument string) bool { return strings.HasPrefix(argument, "--controllers=") })
			if at < 0 {
				flags = append(flags, "")
			} else {
				flags = append(flags, arguments[at])
			}
		}
	}
	return flags
}
