package nfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/inlinenfs"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// unclaimed: pods that name a backend, without a claim.
func unclaimed(s *spec) {
	first, second, refused := s.scratchPod("scratch", 1), s.scratchPod("scratch-beside", 1), s.scratchPod("scratch-late", 2)
	scenario.Step("an administrator lets pods have volumes of a share without a claim", func() error { return s.allowInline(true) })
	scenario.Step("two pods have a folder each", func() error { return s.run(first, second) })
	scenario.Step("what one writes is in its folder on the server, and not in the other's", func() error {
		return errors.Join(s.podWrites(first, inScratch(first), "hello"), readsFile(filepath.Join(s.scratchOf(first), "greeting"), "hello"),
			s.nodes[1].IsEmpty(s.ctx, filepath.Dir(inScratch(second))))
	})
	scenario.Step("the administrator lets them no more, and a new pod's condition says so", func() error {
		if err := errors.Join(s.allowInline(false), s.stowage.Create(s.ctx, refused)); err != nil {
			return err
		}
		return scenario.Eventually(s.ctx, func() error { return s.saysOfVolumes(refused, "set nfs.allowInline") })
	})
	scenario.Step("the others keep theirs, also when their agent is killed and starts again", func() error {
		node := s.nodes[1].Name
		return errors.Join(s.stowage.KillAgent(s.ctx, node), s.stowage.StartAgent(s.ctx, node),
			s.podWrites(first, inScratch(first), "hello again"), s.podFinds(first, inScratch(first), "hello again"))
	})
	scenario.Step("with a pod, its folder goes from the server, with all that is in it", func() error {
		deep := filepath.Join(s.scratchOf(first), strings.Repeat("deep/", 100))
		if err := errors.Join(os.MkdirAll(deep, 0o755), os.Symlink(filepath.Dir(s.canary()), filepath.Join(deep, "way-out")), s.end(first)); err != nil {
			return err
		}
		return errors.Join(lacks(s.scratchOf(first)), exists(s.scratchOf(second)), exists(s.canary()))
	})
	scenario.Step("so do the others'", func() error {
		if err := s.end(second, refused); err != nil {
			return err
		}
		return errors.Join(lacks(s.scratchOf(second)), s.nodes[1].IsEmpty(s.ctx, filepath.Join(guest.AgentRoot, "inline-nfs", "records")))
	})
	scenario.Step("nothing is mounted any more", s.nothingMounted)
}

// scratchPod is a pod on a node that has such a volume.
func (s *spec) scratchPod(name string, node int) *corev1.Pod {
	pod := s.pod(name, node)
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: stowagev1alpha1.NFSDriver, VolumeAttributes: map[string]string{stowagev1alpha1.BackendAttribute: goodClass},
	}}}}
	return pod
}

func (s *spec) allowInline(allow bool) error {
	backend := &stowagev1alpha1.StorageBackend{}
	backend.Name = goodClass
	return s.stowage.Change(s.ctx, backend, func() { backend.Spec.NFS.AllowInline = allow })
}

// scratchOf is the folder of a pod's volume, on the server.
func (s *spec) scratchOf(pod *corev1.Pod) string {
	return filepath.Join(s.good.volumesDir(), ".stowage-inline", string(pod.UID)+"-scratch")
}

// inScratch is a file in it, on the pod's node.
func inScratch(pod *corev1.Pod) string {
	plugin := inlinenfs.Plugin{}
	return filepath.Join(plugin.Path(guest.VolumeDir(pod, plugin.Name(), "scratch")), "greeting")
}

// saysOfVolumes reports whether a pod's condition says something of its volumes.
func (s *spec) saysOfVolumes(pod *corev1.Pod, says string) error {
	read := &corev1.Pod{}
	if err := s.stowage.Client.Get(s.ctx, client.ObjectKeyFromObject(pod), read); err != nil {
		return err
	}
	for _, condition := range read.Status.Conditions {
		if condition.Type == stowagev1alpha1.VolumesReadyCondition && strings.Contains(condition.Message, says) {
			return nil
		}
	}
	return fmt.Errorf("pod %s doesn't say %q: %+v", pod.Name, says, read.Status.Conditions)
}

// readsFile reports whether a file of the server says what was written.
func readsFile(path, want string) error {
	got, err := os.ReadFile(path)
	if err == nil && string(got) != want {
		err = fmt.Errorf("%s says %q, not %q", path, got, want)
	}
	return err
}
