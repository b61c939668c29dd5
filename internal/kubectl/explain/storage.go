package explain

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
)

// ofStorage is the chain from the volume object down to the bytes.
func ofStorage(v *stored) []Link {
	var links []Link
	if v.pv.name != "" {
		links = append(links, pvLink(v))
	}
	if v.backend.name != "" {
		links = append(links, backendLink(v))
	}
	links = append(links, attachmentLinks(v)...)
	if v.place.node.name != "" {
		links = append(links, nodeLink(v))
	}
	if v.nodeVolume.name != "" && (v.pv.found() || v.nodeVolume.found()) {
		links = append(links, nodeVolumeLink(v))
	}
	if v.nodeDisk.name != "" {
		links = append(links, nodeDiskLink(v))
	}
	if v.pv.found() {
		links = append(links, bytesLink(v))
	}
	return links
}

// pvLink judges the volume object.
func pvLink(v *stored) Link {
	pv, link := &v.pv.object, Link{Kind: "PersistentVolume", Name: v.pv.name, State: OK}
	link.Says = fmt.Sprintf("%s, %s, reclaim policy %s", pv.Status.Phase, facts.Size(pv), pv.Spec.PersistentVolumeReclaimPolicy)
	claim, ref := &v.claim.object, pv.Spec.ClaimRef
	switch {
	case v.pv.presence == cluster.Unreadable:
		return unreadable(link.Kind, link.Name)
	case !v.pv.found():
		link.State, link.Says = Wrong, "doesn't exist"
		link.Do = "if the storage still exists, kubectl stowage audit names it; a new volume object with the same name, driver and handle brings it back"
	case v.claim.found() && ref != nil && ref.UID != "" && ref.UID != claim.UID:
		link.State, link.Says = Wrong, fmt.Sprintf("belongs to an earlier claim %s (uid %s)", facts.Claim(pv), ref.UID)
		link.Do = "delete the new claim, then: kubectl stowage undelete " + pv.Name
	case isLost(v):
		link.State, link.Says = Wrong, "the last audit found no storage for it"
		link.Do = "check the storage itself; kubectl stowage audit has the time of the audit"
	case pv.DeletionTimestamp.IsZero() && facts.Newest(v.events, true, event.VolumeUnusable) != "":
		link.State, link.Says = Wrong, facts.Newest(v.events, true, event.VolumeUnusable)
		link.Do = "change spec.accessModes; for another volumeMode, fsType or volumeHandle, create the PersistentVolume again, with policy Retain"
	case pv.Status.Phase == corev1.VolumeFailed:
		link.State, link.Says = Wrong, "Failed: "+pv.Status.Message
	case !pv.DeletionTimestamp.IsZero():
		link.State, link.Says = Waiting, "is being deleted"+windowOf(v)+reasonIn(v.events)
	case pv.Status.Phase == corev1.VolumeReleased:
		link.State, link.Says = Waiting, "Released: claim "+facts.Claim(pv)+" is gone"+windowOf(v)+reasonIn(v.events)
		link.Do = "to give the data back: kubectl stowage undelete " + pv.Name
	}
	return link
}

func isLost(v *stored) bool {
	return v.backend.found() && v.backend.object.Status.Audit != nil && slices.Contains(v.backend.object.Status.Audit.LostVolumes, v.pv.name)
}

// windowOf says how long the data is kept, in half a sentence.
func windowOf(v *stored) string {
	switch r := facts.Retained(&v.pv.object); {
	case r.Kept:
		return "; the policy Retain keeps its data"
	case r.Until != nil:
		return "; its data is kept until " + r.String()
	default:
		return ""
	}
}

func reasonIn(events []corev1.Event) string {
	if why := facts.Newest(events, true); why != "" {
		return "; " + why
	}
	return ""
}

// backendLink judges the StorageBackend.
func backendLink(v *stored) Link {
	link := Link{Kind: "StorageBackend", Name: v.backend.name, State: OK}
	switch {
	case v.backend.presence == cluster.Unreadable:
		return unreadable(link.Kind, link.Name)
	case !v.backend.found():
		link.State, link.Says = Wrong, "doesn't exist"
		link.Do = "create the StorageBackend again with the same name and settings"
		if !v.pv.found() {
			link.Do = "create the StorageBackend, or a claim with another class"
		}
		return link
	}
	status := &v.backend.object.Status
	ready, why := facts.Condition(status.Conditions, stowagev1alpha1.ReadyCondition)
	link.Says = string(status.Type) + ", Ready"
	if status.Capacity != nil && status.Capacity.Total != nil {
		link.Says += fmt.Sprintf(", %s of %s used", facts.Bytes(status.Capacity.Used), facts.Bytes(status.Capacity.Total))
	}
	switch ready {
	case metav1.ConditionFalse:
		link.State, link.Says = Wrong, "isn't Ready: "+why
	case metav1.ConditionUnknown:
		link.State, link.Says, link.Do = Waiting, why, "check that the manager runs: kubectl stowage doctor"
	}
	return link
}

// nodeVolumeLink judges the volume as its node's agent sees it.
func nodeVolumeLink(v *stored) Link {
	link := Link{Kind: "NodeVolume", Name: v.nodeVolume.name, State: OK}
	switch {
	case v.nodeVolume.presence == cluster.Unreadable:
		return unreadable(link.Kind, link.Name)
	case !v.nodeVolume.found():
		link.State, link.Says = Wrong, "doesn't exist"
		link.Do = "if its node's disk has the volume, the manager creates the object again: kubectl describe nodedisks"
		return link
	}
	object := &v.nodeVolume.object
	link.Says = fmt.Sprintf("on node %s, %s used", object.Spec.NodeName, orUnknown(facts.Bytes(object.Status.Used)))
	for _, name := range []string{stowagev1alpha1.ProvisionedCondition, stowagev1alpha1.ReadyCondition, stowagev1alpha1.GrantedCondition, stowagev1alpha1.HealthyCondition} {
		c := meta.FindStatusCondition(object.Status.Conditions, name)
		switch {
		case c == nil && name == stowagev1alpha1.ProvisionedCondition:
			link.State, link.Says = Waiting, "the agent of node "+object.Spec.NodeName+" hasn't reported on it yet"
			link.Do = "check that the node is Ready and that its agent runs: kubectl stowage doctor"
			return link
		case c != nil && c.Status == metav1.ConditionFalse:
			link.State, link.Says = Wrong, fmt.Sprintf("isn't %s: %s: %s", name, c.Reason, c.Message)
			switch {
			case c.Reason == stowagev1alpha1.ReasonPending:
				link.State = Waiting
			case name == stowagev1alpha1.GrantedCondition:
				link.Do = "make room, or lower the claim's request to any size above what it has"
			}
			return link
		}
	}
	return link
}

func orUnknown(text string) string {
	if text == "" {
		return "an unknown amount"
	}
	return text
}

// nodeDiskLink judges the disk below a NodeVolume.
func nodeDiskLink(v *stored) Link {
	link := Link{Kind: "NodeDisk", Name: v.nodeDisk.name, State: OK}
	if !v.nodeDisk.found() {
		link.State, link.Says = Wrong, "doesn't exist: the backend's nodeSelector may no longer match the node"
		return link
	}
	status := &v.nodeDisk.object.Status
	link.Says = fmt.Sprintf("%s, %s of %s available", v.nodeDisk.object.Spec.Path, facts.Bytes(status.Available), facts.Bytes(status.Total))
	ready, why := facts.Condition(status.Conditions, stowagev1alpha1.ReadyCondition)
	switch ready {
	case metav1.ConditionFalse:
		link.State, link.Says = Wrong, "isn't Ready: "+why
	case metav1.ConditionUnknown:
		link.State, link.Says = Waiting, why
	}
	return link
}

func onNode(pv *corev1.PersistentVolume) string {
	if node := facts.Node(pv); node != "" {
		return " on node " + node
	}
	return " of a node that the volume object doesn't name in its nodeAffinity"
}

// bytesLink says where the bytes are, as far as the volume object tells.
func bytesLink(v *stored) Link {
	pv, link := &v.pv.object, Link{Kind: "Bytes", State: OK}
	attributes := map[string]string{}
	if pv.Spec.CSI != nil {
		attributes = pv.Spec.CSI.VolumeAttributes
	}
	switch {
	case facts.Driver(pv) == stowagev1alpha1.LocalDriver:
		link.Says = attributes[stowagev1alpha1.PathAttribute] + onNode(pv)
	case facts.Driver(pv) == stowagev1alpha1.NFSDriver:
		link.Says = fmt.Sprintf("%s:%s", attributes[stowagev1alpha1.ServerAttribute], attributes[stowagev1alpha1.PathAttribute])
	case facts.Driver(pv) == stowagev1alpha1.GCEDriver:
		link.Says = "disk " + cmp.Or(attributes[stowagev1alpha1.DiskAttribute], facts.Handle(pv))
	case pv.Spec.CSI != nil:
		link.Says = fmt.Sprintf("handle %s of driver %s: only that driver knows where", pv.Spec.CSI.VolumeHandle, pv.Spec.CSI.Driver)
	case pv.Spec.NFS != nil:
		link.Says = pv.Spec.NFS.Server + ":" + pv.Spec.NFS.Path
	case pv.Spec.Local != nil:
		link.Says = pv.Spec.Local.Path + onNode(pv)
	case pv.Spec.HostPath != nil:
		link.Says = pv.Spec.HostPath.Path + " of the pod's node"
	default:
		link.Says = "the volume object has a source that this command doesn't describe"
	}
	return link
}
