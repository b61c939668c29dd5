package nfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// volumeOf is one on a server, as the nfs backend makes it.
func volumeOf(on *server, name, options string) corev1.PersistentVolume {
	ports := on.PortOption() + "," + on.MountdOption()
	return corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: stowagev1alpha1.NFSDriver, VolumeHandle: name,
			VolumeAttributes: map[string]string{
				stowagev1alpha1.ServerAttribute:       guest.Address,
				stowagev1alpha1.PathAttribute:         filepath.Join(on.Share(), name),
				stowagev1alpha1.MountOptionsAttribute: strings.TrimSuffix(ports+","+options, ","),
			},
		}}},
	}
}

// provisioned is volumeOf of one whose directory is there.
func provisioned(on *server, name, options string) corev1.PersistentVolume {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Join(on.Share(), name), 0o777)).To(Succeed())
	return volumeOf(on, name, options)
}

func (s *spec) publish(n int, pod string, volume corev1.PersistentVolume) error {
	return s.nodes[n].Call(s.ctx, "Plugin.Publish", Volume{Pod: pod, Volume: volume}, new(time.Duration))
}

func (s *spec) unpublish(n int, pod string, volume corev1.PersistentVolume) error {
	return s.nodes[n].Call(s.ctx, "Plugin.Unpublish", Volume{Pod: pod, Volume: volume}, new(time.Duration))
}

func (s *spec) write(n int, pod, volume, content string) error {
	return s.nodes[n].Write(s.ctx, fileOf(pod, volume, "greeting"), content)
}

// podReads reports whether a pod reads what was written.
func (s *spec) podReads(n int, pod, volume, want string) error {
	return s.nodes[n].Reads(s.ctx, fileOf(pod, volume, "greeting"), want)
}

// pluginMounts reports whether a node has so many NFS mounts.
func (s *spec) pluginMounts(n, want int) error { return s.nodes[n].Mounts(s.ctx, pluginDir, want) }

// refuses reports whether there is an error that has these texts.
func refuses(err error, says ...string) error {
	if err == nil {
		return errors.New("it succeeds")
	}
	missing := slices.DeleteFunc(says, func(said string) bool { return strings.Contains(err.Error(), said) })
	if len(missing) > 0 {
		return fmt.Errorf("the error doesn't say %q: %w", missing, err)
	}
	return nil
}

// noClient: the error names what the kernel lacks.
func noClient(s *spec) {
	volume := provisioned(s.good, "none", "")
	scenario.Step("the error says that the kernel has none", func() error {
		return refuses(s.publish(1, "web", volume), remote.ErrNoNFSClient.Error())
	})
	scenario.Step("the pod's directory goes", func() error { return s.unpublish(1, "web", volume) })
}

// loadModules gives the nodes' kernels an NFS client.
func (s *spec) loadModules() {
	for _, node := range s.nodes[1:] {
		scenario.Step(node.Name+" loads the kernel's module", func() error {
			return node.Call(s.ctx, "Plugin.LoadModules", guest.Nothing{}, &guest.Nothing{})
		})
	}
}

// manyPods: one ReadWriteMany volume on two nodes.
func manyPods(s *spec) {
	volume := provisioned(s.good, "shared", "noatime,hard")
	s.written["shared"] = "hello"
	for n, pod := range map[int]string{1: "writer", 2: "reader"} {
		scenario.Step(fmt.Sprintf("node %d mounts it", n), func() error { return s.publishSoon(n, pod, volume) })
	}
	scenario.Step("what a pod writes on node 1 ...", func() error { return s.write(1, "writer", "shared", "hello") })
	scenario.Step("... a pod reads on node 2", func() error { return s.podReads(2, "reader", "shared", "hello") })
	scenario.Step("a second pod on node 1 shares the mount", func() error {
		return errors.Join(s.publish(1, "second", volume), s.pluginMounts(1, 3))
	})
	scenario.Step("the other pod keeps it when the first goes", func() error {
		return errors.Join(s.unpublish(1, "writer", volume), s.pluginMounts(1, 2), s.podReads(1, "second", "shared", "hello"))
	})
	scenario.Step("a pod that may only read can't write", func() error {
		request := Volume{Pod: "readonly", Volume: volume, Access: mount.ReadOnly}
		if err := s.nodes[2].Call(s.ctx, "Plugin.Publish", request, new(time.Duration)); err != nil {
			return err
		}
		return errors.Join(refuses(s.write(2, "readonly", "shared", "no"), "read-only"), s.podReads(2, "readonly", "shared", "hello"))
	})
	scenario.Step("with the last pods, the mounts go", func() error {
		return errors.Join(s.unpublish(1, "second", volume), s.unpublish(2, "reader", volume), s.unpublish(2, "readonly", volume),
			s.pluginMounts(1, 0), s.pluginMounts(2, 0))
	})
}

// publishSoon waits for a server that has just been started.
func (s *spec) publishSoon(n int, pod string, volume corev1.PersistentVolume) error {
	return scenario.Eventually(s.ctx, func() error { return s.publish(n, pod, volume) })
}
