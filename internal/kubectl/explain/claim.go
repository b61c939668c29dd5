package explain

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
)

// ofClaim is the chain from a claim down.
func ofClaim(v *stored, namespace string) []Link {
	name := namespace + "/" + v.claim.name
	if v.volume != "" {
		name += " (volume " + v.volume + ")"
	}
	switch v.claim.presence {
	case cluster.Unreadable:
		return []Link{unreadable("PersistentVolumeClaim", name)}
	case cluster.Absent:
		return []Link{{Kind: "PersistentVolumeClaim", Name: name, State: Wrong, Says: "doesn't exist", Do: "create the claim, or correct the claim's name in the pod"}}
	}
	links := []Link{claimLink(v, name)}
	if v.claim.object.Spec.VolumeName == "" {
		links = append(links, below(1, []Link{classLink(v)})...)
	}
	return append(links, below(1, ofStorage(v))...)
}

// ofVolumeObject is the chain of a volume object, with its claim if that has it.
func ofVolumeObject(v *stored) []Link {
	if v.claim.found() && v.claim.object.Spec.VolumeName == v.pv.name {
		return ofClaim(v, v.claim.object.Namespace)
	}
	return ofStorage(v)
}

// claimLink judges a claim that exists.
func claimLink(v *stored, name string) Link {
	claim := &v.claim.object
	link := Link{Kind: "PersistentVolumeClaim", Name: name, State: OK}
	switch {
	case !claim.DeletionTimestamp.IsZero():
		link.State, link.Says = Waiting, "is being deleted"
		if len(v.users) > 0 {
			link.State = Wrong
			link.Says += ", and is kept while pods use it: " + strings.Join(v.users, ", ")
			link.Do = "delete these pods if the claim is to go"
		}
	case claim.Status.Phase == corev1.ClaimLost:
		link.State, link.Says = Wrong, fmt.Sprintf("is Lost: volume %s is gone or belongs to another claim", claim.Spec.VolumeName)
		link.Do = "restore the data to a new claim; if the storage still exists, kubectl stowage audit names it"
	case claim.Status.Phase == corev1.ClaimBound:
		size := claim.Status.Capacity[corev1.ResourceStorage]
		link.Says = fmt.Sprintf("Bound to %s, %s", claim.Spec.VolumeName, facts.Bytes(&size))
		if v.volume == "" && len(v.users) > 0 {
			link.Says += ", used by pods " + strings.Join(v.users, ", ")
		}
		if why := resizing(claim); why != "" {
			link.State, link.Says = Waiting, link.Says+"; "+why
		}
	default:
		why := pendingReason(v)
		link.State, link.Says, link.Do = Waiting, "is Pending: "+why, pendingAdvice(v, why)
		link.forPod = strings.HasPrefix(why, "WaitForPodScheduled: ")
	}
	return link
}

// resizing is why a claim is smaller than it requests, or "".
func resizing(claim *corev1.PersistentVolumeClaim) string {
	for _, c := range claim.Status.Conditions {
		switch c.Type {
		case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending, corev1.PersistentVolumeClaimControllerResizeError,
			corev1.PersistentVolumeClaimNodeResizeError, corev1.PersistentVolumeClaimVolumeModifyVolumeError, corev1.PersistentVolumeClaimVolumeModifyingVolume:
			if c.Status == corev1.ConditionTrue {
				return strings.TrimSuffix(fmt.Sprintf("%s: %s", c.Type, c.Message), ": ")
			}
		}
	}
	return ""
}

const noReason = "no condition and no recent event says why"

// pendingReason is what the condition of --scope=cluster says; else what the newest event says.
func pendingReason(v *stored) string {
	if c := facts.ClaimCondition(&v.claim.object, stowagev1alpha1.BindableCondition); c != nil && c.Status == corev1.ConditionFalse {
		return c.Reason + ": " + c.Message
	}
	return cmp.Or(facts.Newest(v.events, true), facts.Newest(v.events, false), noReason)
}

// pendingAdvice is what to do where the reason doesn't say it.
func pendingAdvice(v *stored, why string) string {
	mode := v.class.object.VolumeBindingMode
	switch {
	case v.claim.object.Spec.StorageClassName == nil:
		return "name a class in spec.storageClassName of a new claim, or make a class the default: kubectl get storageclasses"
	case v.class.found() && mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer && len(v.users) == 0 && (why == noReason || strings.HasPrefix(why, "WaitForFirstConsumer: ")):
		return "create a pod that uses the claim: its class has the volumeBindingMode WaitForFirstConsumer"
	default:
		return ""
	}
}

// classLink judges the class of a claim that has no volume. A bound claim needs none.
func classLink(v *stored) Link {
	link := Link{Kind: "StorageClass", Name: v.class.name, State: OK}
	switch {
	case v.class.name == "":
		link.Name, link.Says = "(none)", "the claim is only bound to volumes that exist"
		if v.claim.object.Spec.StorageClassName == nil {
			link.State, link.Says = Wrong, "the claim names no class, and gets none: there is no default class"
			link.Do = pendingAdvice(v, "")
		}
	case v.class.presence == cluster.Unreadable:
		return unreadable(link.Kind, link.Name)
	case !v.class.found():
		link.State, link.Says = Waiting, "doesn't exist: only a volume object that names the class can be bound"
		link.Do = "create the class, or a claim with a class that exists: kubectl get storageclasses"
	case backend.IsOurs(v.class.object.Provisioner), v.backend.found() && facts.IsCSI(&v.backend.object):
		link.Says = "provisioner " + v.class.object.Provisioner
	default:
		link.Says = fmt.Sprintf("provisioner %s, which isn't Stowage's", v.class.object.Provisioner)
		if !v.driver.found() && v.driver.presence != cluster.Unreadable && !strings.HasPrefix(v.class.object.Provisioner, "kubernetes.io/") {
			link.Says += "; it has no CSIDriver object: it may not be installed, or use none"
		}
	}
	return link
}
