package apidata_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/apidata"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// noting is a kernel that has no labels, and notes which one was asked for.
type noting struct {
	mount.Kernel
	label string
}

func (n *noting) Tmpfs(target string, options mount.TmpfsOptions) error {
	n.label, options.Label = options.Label, ""
	return n.Kernel.Tmpfs(target, options)
}

func TestMemoryHasTheLabelThatItsPodsContainersMayUse(t *testing.T) {
	user := corev1.Container{
		VolumeMounts:    []corev1.VolumeMount{{Name: "shown"}},
		SecurityContext: &corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c1,c2"}},
	}
	for name, test := range map[string]struct {
		owner ownership.Owner
		want  string
	}{
		"on a node with SELinux": {ownership.Owner{SELinux: true}, "system_u:object_r:container_file_t:s0:c1,c2"},
		"on one without":         {ownership.Owner{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v, kernel := newVolume(t, true), &noting{}
			kind := apidata.Type{Name: "example.com/shown", InMemory: true, Is: func(corev1.Volume) bool { return true }}
			v.Plugin = apidata.New(kernel, kind).WithOwner(test.owner)
			spec := showing("secret")
			spec.Pod.Spec.Containers = []corev1.Container{user}
			if err := v.Publish(t.Context(), spec, v.dir); err != nil {
				t.Fatal(err)
			}
			if kernel.label != test.want {
				t.Errorf("it is mounted with label %q", kernel.label)
			}
			v.mustShow(t, "secret")
		})
	}
}
