package explain

import (
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
	"github.com/stowage-dev/stowage/internal/volume"
)

// attachmentLinks judges the attachments of a volume that is a device: that to the node, and
// those to other nodes that stand in its way.
func attachmentLinks(v *stored) []Link {
	if !v.pv.found() || !needsAttach(v) {
		return nil
	}
	var links []Link
	single := !volume.AllowsMultiAttach(v.pv.object.Spec.AccessModes)
	here := false
	for i := range v.attachments {
		a := &v.attachments[i]
		link := attachmentLink(a)
		if a.Spec.NodeName == v.place.node.name || v.place.node.name == "" {
			here = true
		} else if single && len(v.users) > 0 {
			link.State = Wrong
			link.Says = fmt.Sprintf("the volume is still attached to node %s; its access modes allow one node", a.Spec.NodeName)
			link.Do = "wait until the pods on that node have stopped; if the node is lost, see the taint node.kubernetes.io/out-of-service in docs/operate/force-detach.md"
		}
		links = append(links, link)
	}
	if !here && v.place.node.name != "" && len(v.users) > 0 {
		links = append(links, Link{
			Kind: "VolumeAttachment", Name: "(none)", State: Waiting,
			Says: "the volume isn't attached to node " + v.place.node.name + " yet",
		})
	}
	return links
}

func needsAttach(v *stored) bool {
	if v.driver.found() {
		return v.driver.object.Spec.AttachRequired == nil || *v.driver.object.Spec.AttachRequired
	}
	return backend.NeedsAttach(v.driver.name) || len(v.attachments) > 0
}

func attachmentLink(a *storagev1.VolumeAttachment) Link {
	link := Link{Kind: "VolumeAttachment", Name: a.Name, State: OK, Says: "attached to node " + a.Spec.NodeName}
	switch {
	case a.Status.DetachError != nil:
		link.State, link.Says = Wrong, fmt.Sprintf("detaching from node %s fails: %s", a.Spec.NodeName, a.Status.DetachError.Message)
	case !a.DeletionTimestamp.IsZero():
		link.State, link.Says = Waiting, "is being detached from node "+a.Spec.NodeName
	case a.Status.AttachError != nil:
		link.State, link.Says = Wrong, fmt.Sprintf("attaching to node %s fails: %s", a.Spec.NodeName, a.Status.AttachError.Message)
	case !a.Status.Attached:
		link.State, link.Says = Waiting, "is being attached to node "+a.Spec.NodeName
	}
	return link
}

// nodeLink judges the node that uses the volume, or is the only one that could.
func nodeLink(v *stored) Link {
	name := v.place.node.name
	link := Link{Kind: "Node", Name: name, State: OK, Says: "Ready"}
	switch only := facts.Node(&v.pv.object); {
	case v.place.node.presence == cluster.Unreadable:
		return unreadable(link.Kind, link.Name)
	case !v.place.node.found():
		link.State, link.Says = Wrong, "doesn't exist, and the volume can't be used without it"
		link.Do = "bring the node back with the same name; if its disk is lost, delete the claim and restore the data from a backup"
		return link
	case only != "" && only != name && only != v.place.node.object.Labels["kubernetes.io/hostname"]:
		link.State, link.Says = Wrong, fmt.Sprintf("isn't node %s, where the volume's data is", only)
		link.Do = "remove spec.nodeName or the node affinity of the pod, so that the scheduler chooses node " + only
		return link
	}
	if ready, why := facts.NodeReady(&v.place.node.object); !ready {
		link.State, link.Says = Wrong, "isn't Ready: "+why
		return link
	}
	return driverOnNode(v, link)
}

// driverOnNode judges whether the kubelet of a Ready node knows the volume's CSI driver.
func driverOnNode(v *stored, link Link) Link {
	driver := facts.Driver(&v.pv.object)
	if v.pv.object.Spec.CSI == nil || v.place.csiNode.presence == cluster.Unreadable {
		return link
	}
	csiNode := &v.place.csiNode.object
	registered := slices.ContainsFunc(csiNode.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
	_, follows := csiNode.Annotations[stowagev1alpha1.FollowsPodsAnnotation]
	switch {
	case registered || follows:
		link.Says = fmt.Sprintf("Ready, driver %s registered", driver)
	case backend.IsOurs(driver):
		link.State, link.Says = Wrong, "driver "+driver+" isn't registered"
		link.Do = "check the node agent there: kubectl get pods -A -o wide -l app.kubernetes.io/component=node-agent --field-selector spec.nodeName=" + link.Name
	default:
		link.State, link.Says = Wrong, "driver "+driver+" isn't registered"
		link.Do = "check the driver's own pod on the node"
	}
	return link
}
