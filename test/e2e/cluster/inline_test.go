package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// inlineDir is where a share has the folders of pods' own.
const inlineDir = ".stowage-inline"

// inline: a pod that names a backend itself has a folder of its own on the share, which
// goes with it.
func inline(n *namespace) {
	pod := n.pod("owner", on(node1), asUser, func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: data, VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: stowagev1alpha1.NFSDriver, VolumeAttributes: map[string]string{stowagev1alpha1.BackendParameter: shared},
		}}}}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: data, MountPath: dataPath}}
	})
	scenario.Step("a pod that names a backend runs", func() error { return n.launch(pod) })
	scenario.Step("it writes and reads", func() error { return n.says(pod.Name, "echo hello >/data/greeting && cat /data/greeting", "hello") })
	scenario.Step("what it wrote is in a folder of its own", func() error { return n.countInline(1) })
	scenario.Step("the pod goes", func() error { return n.remove(pod) })
	n.Soon("and the folder", func() error { return n.countInline(0) })
}

// countInline checks how many files named greeting pods have in folders of their own.
func (n *namespace) countInline(want int) error {
	root, found := filepath.Join(n.cluster.Share.Share(), inlineDir), 0
	err := filepath.WalkDir(root, func(_ string, entry os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil && entry.Name() == "greeting" {
			found++
		}
		return err
	})
	if err == nil && found != want {
		err = fmt.Errorf("there are %d, not %d", found, want)
	}
	return err
}
