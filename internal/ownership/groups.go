package ownership

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// groupAnnotation is the group that may use a volume's files, set by the administrator or the
// provisioner.
const groupAnnotation = "pv.beta.kubernetes.io/gid"

// SupplementalGroups lists the groups of a pod's processes besides their own, for the container
// runtime. These are the pod's fsGroup and supplementalGroups, and the groups that its volumes
// name. They are in order, each once. An annotation that isn't a group's number is ignored.
func SupplementalGroups(pod *corev1.Pod, volumes []*corev1.PersistentVolume) []int64 {
	var groups []int64
	if security := pod.Spec.SecurityContext; security != nil {
		if security.FSGroup != nil {
			groups = append(groups, *security.FSGroup)
		}
		groups = append(groups, security.SupplementalGroups...)
	}
	for _, volume := range volumes {
		group, err := strconv.ParseUint(volume.Annotations[groupAnnotation], 10, 31)
		if err == nil {
			groups = append(groups, int64(group))
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}
