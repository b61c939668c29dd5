package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
)

// A node's clock may be ahead of the API server's, or behind it, by these. Both times are cut to
// seconds. A write that takes long looks like a clock that is behind: the kubelet gives up after
// ten seconds.
const ahead, behind = 5 * time.Second, 15 * time.Second

var ours = []string{stowagev1alpha1.GCEDriver, stowagev1alpha1.LocalDriver, stowagev1alpha1.NFSDriver}

func drivers(o *objects) []Check {
	found := map[string]*storagev1.CSIDriver{}
	for i := range o.drivers {
		found[o.drivers[i].Name] = &o.drivers[i]
	}
	var wrong []string
	for _, name := range ours {
		switch d := found[name]; {
		case d == nil:
			wrong = append(wrong, name+" is missing")
		case d.Spec.AttachRequired != nil && *d.Spec.AttachRequired != backend.NeedsAttach(name):
			wrong = append(wrong, fmt.Sprintf("%s has attachRequired %t, which can't be changed: delete it and apply it again", name, *d.Spec.AttachRequired))
		}
	}
	if len(wrong) > 0 {
		return []Check{{Subject: "CSIDrivers", Result: Failed, Says: strings.Join(wrong, "; "), Do: "kubectl apply --server-side -k config/csidrivers"}}
	}
	return []Check{{Subject: "CSIDrivers", Result: OK, Says: strings.Join(ours, ", ")}}
}

// registered checks that the kubelet of each Linux node knows the drivers.
func registered(o *objects) []Check {
	known, missing, follows := map[string]*storagev1.CSINode{}, []string(nil), 0
	for i := range o.csiNodes {
		known[o.csiNodes[i].Name] = &o.csiNodes[i]
	}
	for i := range o.nodes {
		n := known[o.nodes[i].Name]
		if system := o.nodes[i].Status.NodeInfo.OperatingSystem; system != "" && system != "linux" {
			continue
		}
		if n != nil && n.Annotations[stowagev1alpha1.FollowsPodsAnnotation] != "" {
			follows++
			continue
		}
		for _, name := range ours {
			if n == nil || !slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == name }) {
				missing = append(missing, name+" on "+o.nodes[i].Name)
			}
		}
	}
	switch {
	case len(missing) > 0:
		return []Check{{Subject: "registration", Result: Failed, Says: "not registered: " + few(missing), Do: "see the agent's pod on that node: its log names the kubelet's folder that it uses (config/components/kubelet-dir)"}}
	case follows > 0:
		return []Check{{Subject: "registration", Result: OK, Says: fmt.Sprintf("the drivers are on every node; agents follow pods on %d of them", follows)}}
	default:
		return []Check{{Subject: "registration", Result: OK, Says: fmt.Sprintf("the drivers are on all of %d nodes", len(o.nodes))}}
	}
}

// most is how many names, or backends with a problem, are listed.
const most = 5

// few are the first names, and how many more there are.
func few(names []string) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// propagation checks what the agent's pods need so that others see their mounts.
func propagation(o *objects) (checks []Check) {
	for i := range o.agents {
		spec := &o.agents[i].Spec.Template.Spec
		for c := range spec.Containers {
			checks = append(checks, sharing(spec, &spec.Containers[c]))
		}
	}
	return checks
}

func sharing(spec *corev1.PodSpec, container *corev1.Container) Check {
	var wrong []string
	if container.SecurityContext == nil || container.SecurityContext.Privileged == nil || !*container.SecurityContext.Privileged {
		wrong = append(wrong, "the container isn't privileged, which Bidirectional needs")
	}
	if !spec.HostNetwork {
		wrong = append(wrong, "hostNetwork is off: NFS mounts would hang when the agent is replaced")
	}
	for _, m := range container.VolumeMounts {
		if (m.Name == "kubelet" || m.Name == "local-base") && (m.MountPropagation == nil || *m.MountPropagation != corev1.MountPropagationBidirectional) {
			wrong = append(wrong, "volume "+m.Name+" isn't mounted Bidirectional")
		}
	}
	if len(wrong) > 0 {
		return Check{Subject: "mount propagation", Result: Failed, Says: strings.Join(wrong, "; "), Do: "apply config/node of the installed version again"}
	}
	return Check{Subject: "mount propagation", Result: OK, Says: "the agent is privileged and mounts Bidirectional"}
}

// nodes lists kernels and systems, and nodes that aren't Ready.
func nodes(o *objects) []Check {
	kernels, notReady := map[string]bool{}, []string(nil)
	for i := range o.nodes {
		info := o.nodes[i].Status.NodeInfo
		if info.KernelVersion != "" {
			kernels[fmt.Sprintf("%s (%s, %s)", info.KernelVersion, info.OSImage, info.KubeletVersion)] = true
		}
		if ready, _ := facts.NodeReady(&o.nodes[i]); !ready {
			notReady = append(notReady, o.nodes[i].Name)
		}
	}
	checks := []Check{{Subject: "kernels", Result: OK, Says: few(sorted(kernels))}}
	if len(kernels) == 0 {
		checks[0].Result, checks[0].Says = Unknown, "no node reports its kernel"
	}
	if len(notReady) > 0 {
		checks = append(checks, Check{Subject: "nodes", Result: Warning, Says: "not Ready: " + few(notReady), Do: "volumes that are only on them wait: kubectl stowage status"})
	}
	return checks
}

// clocks compares the time that each kubelet writes into its lease with the time at which the
// API server recorded that write.
func clocks(o *objects) []Check {
	var off []string
	compared := 0
	for i := range o.leases {
		l := &o.leases[i]
		if l.Spec.RenewTime == nil {
			continue
		}
		var written *metav1.Time
		for _, f := range l.ManagedFields {
			if f.Time != nil && (written == nil || written.Before(f.Time)) {
				written = f.Time
			}
		}
		if written == nil {
			continue
		}
		compared++
		if difference := l.Spec.RenewTime.Sub(written.Time); difference > ahead || difference < -behind {
			off = append(off, fmt.Sprintf("%s by %s", l.Name, difference.Round(time.Second)))
		}
	}
	switch {
	case len(off) > 0:
		return []Check{{Subject: "clocks", Result: Warning, Says: "off: " + few(off), Do: "start a time service on these nodes: leases, windows and events depend on the time"}}
	case compared == 0:
		return []Check{{Subject: "clocks", Result: Unknown, Says: "no lease of a node could be read"}}
	default:
		return []Check{{Subject: "clocks", Result: OK, Says: fmt.Sprintf("those of %d nodes are within %s of the API server's", compared, behind)}}
	}
}

// defaults checks the classes that users meet first.
func defaults(o *objects) []Check {
	var byDefault []string
	for i := range o.classes {
		if o.classes[i].Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			byDefault = append(byDefault, o.classes[i].Name)
		}
	}
	checks := []Check{{Subject: "default class", Result: OK, Says: few(append(byDefault, "(none)")[:max(1, len(byDefault))])}}
	if len(byDefault) > 1 {
		checks[0].Result, checks[0].Do = Warning, "leave one: with several, the newest is taken"
	}
	return checks
}

// backends checks that all are Ready. Each that isn't has a line of its own: its message is long.
func backends(o *objects) (checks []Check) {
	for i := range o.backends {
		if status, why := facts.Condition(o.backends[i].Status.Conditions, stowagev1alpha1.ReadyCondition); status != metav1.ConditionTrue {
			checks = append(checks, Check{Subject: "backends", Result: Failed, Says: o.backends[i].Name + " isn't Ready: " + why})
		}
	}
	switch {
	case len(o.backends) == 0:
		return []Check{{Subject: "backends", Result: Warning, Says: "there is none", Do: "create one, such as config/samples/local_backend.yaml"}}
	case len(checks) == 0:
		return []Check{{Subject: "backends", Result: OK, Says: fmt.Sprintf("all of %d are Ready", len(o.backends))}}
	case len(checks) > most:
		more := fmt.Sprintf("%d more aren't Ready", len(checks)-most)
		return append(checks[:most], Check{Subject: "backends", Result: Failed, Says: more, Do: "kubectl stowage status has all of them"})
	default:
		return checks
	}
}

// binders checks that exactly one program binds claims.
func binders(o *objects) []Check {
	const controller = "persistentvolume-binder-controller"
	scope, check := scopeOf(o), Check{Subject: "binding", Result: OK}
	off := slices.ContainsFunc(o.controllers, func(flag string) bool { return strings.Contains(flag, "-"+controller) })
	switch {
	case scope == "unknown" || len(o.controllers) == 0:
		check.Result, check.Says = Unknown, "the flags of kube-controller-manager can't be seen here: with --scope=cluster its volume controllers must be off, else on"
	case scope == "cluster" && !off:
		check.Result, check.Says = Failed, "Stowage has --scope=cluster, and kube-controller-manager binds, too"
		check.Do = "set --controllers of kube-controller-manager as config/standalone/kustomization.yaml says"
	case scope == "classes" && off:
		check.Result, check.Says = Failed, "Stowage has --scope=classes, and the binder of kube-controller-manager is off: nothing binds claims"
		check.Do = "install the standalone overlay, or switch the controller on again"
	default:
		check.Says = "one program binds claims"
	}
	return []Check{check}
}

// unknowable is what no object of the API tells.
func unknowable(*objects) []Check {
	return []Check{
		{Subject: "tools on nodes", Result: Unknown, Says: "no object lists the programs on a node; the agent's image brings mkfs, fsck and mount.nfs with it", Do: "for a program that is missing, see the events of the pod that waits"},
		{Subject: "kernel modules", Result: Unknown, Says: "no object says whether nfs, xfs, ext4 and loop can be loaded, or whether a disk has project quotas", Do: "see the conditions of NodeVolumes and the events of pods"},
		{Subject: "network", Result: Unknown, Says: "no object says whether a node reaches an NFS server or a cloud", Do: "the condition Reachable of a StorageBackend says it of the manager"},
	}
}
