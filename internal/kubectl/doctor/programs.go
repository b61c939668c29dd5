package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// leaseAge is how old the manager's lease may be: it is renewed every few seconds.
const leaseAge = time.Minute

func versions(o *objects) []Check {
	images := map[string]bool{}
	for i := range o.managers {
		images[tagOf(o.managers[i].Spec.Template.Spec.Containers)] = true
	}
	for i := range o.agents {
		images[tagOf(o.agents[i].Spec.Template.Spec.Containers)] = true
	}
	tags := sorted(images)
	check := Check{Subject: "versions", Result: OK, Says: fmt.Sprintf("Kubernetes %s, plug-in %s, images %s", o.server, o.client, strings.Join(tags, ", "))}
	switch {
	case len(tags) > 1:
		check.Result, check.Do = Warning, "run manager and node agents in one version, unless an upgrade is under way"
	case len(tags) == 0:
		check.Says = fmt.Sprintf("Kubernetes %s, plug-in %s, no program in the cluster", o.server, o.client)
	case strings.HasSuffix(tags[0], "latest"):
		check.Result, check.Do = Warning, "name the images with a version or a digest: latest changes under running nodes"
	}
	return []Check{check}
}

// tagOf is what follows the name of the first container's image.
func tagOf(containers []corev1.Container) string {
	if len(containers) == 0 {
		return "(none)"
	}
	image := containers[0].Image
	if _, digest, is := strings.Cut(image, "@"); is {
		return digest
	}
	name := image[strings.LastIndex(image, "/")+1:]
	if _, tag, is := strings.Cut(name, ":"); is {
		return tag
	}
	return ":latest"
}

func sorted(set map[string]bool) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// resources are those that the CRDs define.
var resources = []string{"nodedisks", "noderecyclings", "nodevolumes", "storagebackends"}

func api(o *objects) []Check {
	missing := slices.DeleteFunc(slices.Clone(resources), func(name string) bool { return slices.Contains(o.served, name) })
	if len(missing) > 0 {
		return []Check{{Subject: "CRDs", Result: Failed, Says: "the API server doesn't serve " + strings.Join(missing, ", "), Do: "install the CRDs: make install, or kubectl apply --server-side -k config/crd"}}
	}
	return []Check{{Subject: "CRDs", Result: OK, Says: "stowage.dev/v1alpha1 is served"}}
}

func manager(o *objects) []Check {
	if lead := leader(o); len(o.managers) == 0 && lead.Result == OK {
		return []Check{{Subject: "manager", Result: OK, Says: "outside the cluster, without a Deployment: " + lead.Says}}
	}
	if len(o.managers) == 0 {
		return []Check{{Subject: "manager", Result: Failed, Says: "no Deployment of the manager was found", Do: "install Stowage: make deploy"}}
	}
	var checks []Check
	for i := range o.managers {
		d := &o.managers[i]
		check := Check{Subject: "manager", Result: OK, Says: fmt.Sprintf("%s/%s: %d of %d replicas ready, scope %s", d.Namespace, d.Name, d.Status.ReadyReplicas, d.Status.Replicas, scopeOf(o))}
		if d.Status.ReadyReplicas == 0 {
			check.Result, check.Do = Failed, fmt.Sprintf("see kubectl -n %s describe deployment %s, and its pods' logs", d.Namespace, d.Name)
		}
		checks = append(checks, check, leader(o))
	}
	return append(checks, restarts(o)...)
}

// scopeOf is the --scope of the manager's arguments, or "unknown".
func scopeOf(o *objects) string {
	for i := range o.managers {
		for _, container := range o.managers[i].Spec.Template.Spec.Containers {
			for _, argument := range container.Args {
				if scope, is := strings.CutPrefix(argument, "--scope="); is {
					return scope
				}
			}
		}
	}
	return "unknown"
}

func leader(o *objects) Check {
	check := Check{Subject: "leader", Result: Failed, Says: "no manager renews a lease", Do: "see the logs of the manager's pods"}
	for i := range o.lead {
		l := &o.lead[i]
		if l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil {
			continue
		}
		if o.now.Sub(l.Spec.RenewTime.Time) < leaseAge {
			return Check{Subject: "leader", Result: OK, Says: fmt.Sprintf("%s holds lease %s", *l.Spec.HolderIdentity, l.Name)}
		}
		check.Says = fmt.Sprintf("lease %s was last renewed at %s", l.Name, l.Spec.RenewTime.UTC().Format(time.RFC3339))
	}
	return check
}

// restarts warns of Stowage's containers that end again and again.
func restarts(o *objects) (checks []Check) {
	for i := range o.pods {
		for _, c := range o.pods[i].Status.ContainerStatuses {
			if c.State.Waiting != nil && c.State.Waiting.Reason != "ContainerCreating" {
				checks = append(checks, Check{
					Subject: "pods", Result: Failed, Says: fmt.Sprintf("pod %s on node %s: %s: %s", o.pods[i].Name, o.pods[i].Spec.NodeName, c.State.Waiting.Reason, c.State.Waiting.Message),
					Do: fmt.Sprintf("see kubectl -n %s logs %s --previous", o.pods[i].Namespace, o.pods[i].Name),
				})
			}
		}
	}
	return checks
}

func agents(o *objects) []Check {
	if follow := followers(o); len(o.agents) == 0 && follow > 0 {
		return []Check{{Subject: "node agents", Result: OK, Says: fmt.Sprintf("outside the cluster, without a DaemonSet: they follow pods on %d of %d nodes", follow, len(o.nodes))}}
	}
	if len(o.agents) == 0 {
		return []Check{{Subject: "node agents", Result: Failed, Says: "no DaemonSet of the node agent was found", Do: "install Stowage: make deploy"}}
	}
	var checks []Check
	for i := range o.agents {
		s := &o.agents[i].Status
		check := Check{Subject: "node agents", Result: OK, Says: fmt.Sprintf("%d of %d ready, %d with the newest template", s.NumberReady, s.DesiredNumberScheduled, s.UpdatedNumberScheduled)}
		if s.NumberReady < s.DesiredNumberScheduled {
			check.Result = Failed
			check.Do = fmt.Sprintf("find those that aren't: kubectl -n %s get pods -o wide -l app.kubernetes.io/component=node-agent", o.agents[i].Namespace)
		}
		checks = append(checks, check)
	}
	return checks
}

// followers counts the nodes on which an agent follows pods: they have no kubelet.
func followers(o *objects) (count int) {
	for i := range o.csiNodes {
		if o.csiNodes[i].Annotations[stowagev1alpha1.FollowsPodsAnnotation] != "" {
			count++
		}
	}
	return count
}

func rights(o *objects) []Check {
	switch {
	case o.unasked != "":
		return []Check{{Subject: "rights", Result: Unknown, Says: "the API server did not say what manager and agents may do: " + o.unasked, Do: "run the command with the right to create subjectaccessreviews"}}
	case len(o.denied) > 0:
		return []Check{{Subject: "rights", Result: Failed, Says: "missing: " + strings.Join(o.denied, "; "), Do: "apply config/rbac of the installed version again"}}
	case o.asked == 0:
		return nil
	default:
		return []Check{{Subject: "rights", Result: OK, Says: fmt.Sprintf("%d rights of the manager and the agents were asked, and are granted", o.asked)}}
	}
}
