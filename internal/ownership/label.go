package ownership

import (
	"slices"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
)

// Parts of the SELinux label of files that containers use, as container-selinux has
// them. A pod's type and role are its processes': files have these.
const (
	fileUser = "system_u"
	fileRole = "object_r"
	fileType = "container_file_t"
)

// selinuxFolder is where the kernel shows SELinux, if it has it.
const selinuxFolder = "/sys/fs/selinux"

// HasSELinux reports whether files have SELinux labels on this node.
func HasSELinux() bool {
	var system unix.Statfs_t
	return unix.Statfs(selinuxFolder, &system) == nil && system.Type == unix.SELINUX_MAGIC
}

// Label is the SELinux label of all files of a pod's volume, for the mount option context. It is
// empty where one mount can't decide it. A container with the volume may name no level, so that the
// container runtime chooses one. Two containers may name different ones, or the pod may want its
// files labelled one by one. The runtime labels those volumes.
func Label(pod *corev1.Pod, volume string) string {
	if pod == nil || labelsFiles(pod.Spec.SecurityContext) {
		return ""
	}
	label := ""
	for _, container := range usersOf(pod, volume) {
		wanted := labelOf(optionsOf(pod, container))
		if wanted == "" || label != "" && label != wanted {
			return ""
		}
		label = wanted
	}
	return label
}

// LabelForOne is the label of a volume object that only one pod can use; a second pod could
// need another label for the others.
func (o Owner) LabelForOne(pod *corev1.Pod, name string, volume *corev1.PersistentVolume) string {
	modes := volume.Spec.AccessModes
	if len(modes) != 1 || modes[0] != corev1.ReadWriteOncePod {
		return ""
	}
	return o.Label(pod, name)
}

// Label is the label of a volume that is the pod's own; empty without SELinux.
func (o Owner) Label(pod *corev1.Pod, volume string) string {
	if !o.SELinux {
		return ""
	}
	return Label(pod, volume)
}

// LabelSettings are what a file system is mounted with that has a label.
func LabelSettings(label string) []mount.Setting {
	if label == "" {
		return nil
	}
	return []mount.Setting{{Key: "context", Value: label}}
}

func labelsFiles(security *corev1.PodSecurityContext) bool {
	policy := corev1.SELinuxChangePolicyMountOption
	if security != nil && security.SELinuxChangePolicy != nil {
		policy = *security.SELinuxChangePolicy
	}
	return policy == corev1.SELinuxChangePolicyRecursive
}

// usersOf is the containers of a pod that see a volume.
func usersOf(pod *corev1.Pod, volume string) []corev1.Container {
	users := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	return slices.DeleteFunc(users, func(container corev1.Container) bool {
		return !slices.ContainsFunc(container.VolumeMounts, func(seen corev1.VolumeMount) bool { return seen.Name == volume })
	})
}

// optionsOf is what a container is labelled by: its own options, or the pod's.
func optionsOf(pod *corev1.Pod, container corev1.Container) *corev1.SELinuxOptions {
	if own := container.SecurityContext; own != nil && own.SELinuxOptions != nil {
		return own.SELinuxOptions
	}
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.SELinuxOptions
}

// labelOf is the label of files that a process with these options may use.
func labelOf(options *corev1.SELinuxOptions) string {
	if options == nil || options.Level == "" {
		return ""
	}
	user := options.User
	if user == "" {
		user = fileUser
	}
	return user + ":" + fileRole + ":" + fileType + ":" + options.Level
}
