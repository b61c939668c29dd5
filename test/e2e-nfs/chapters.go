package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/story"
)

// chapters are the story, in its order.
var chapters = []func(*tale){
	// The node agent's volume type alone.
	noClient, shared, versions, restarted, silent, stale, cleaned,
	// A whole Stowage.
	installed, claimed, named, unclaimed, stopped, away, replaced, deleted, left,
}

// volume is one on a server, as the nfs backend makes it.
func (s *tale) volume(on *server, name, options string) corev1.PersistentVolume {
	ports := on.PortOption() + "," + on.MountdOption()
	return corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: stowagev1alpha1.NFSDriver, VolumeHandle: name,
			VolumeAttributes: map[string]string{
				stowagev1alpha1.ServerAttribute:       guests.Address,
				stowagev1alpha1.PathAttribute:         filepath.Join(on.Share(), name),
				stowagev1alpha1.MountOptionsAttribute: strings.TrimSuffix(ports+","+options, ","),
			},
		}}},
	}
}

// provisioned makes the directory of a volume as well.
func (s *tale) provisioned(on *server, name, options string) corev1.PersistentVolume {
	if s.Err() != nil {
		return corev1.PersistentVolume{}
	}
	if err := os.MkdirAll(filepath.Join(on.Share(), name), 0o777); err != nil {
		s.Fail(err)
	}
	return s.volume(on, name, options)
}

func (s *tale) publish(n int, pod string, volume corev1.PersistentVolume) error {
	return s.nodes[n].Ask("Plugin.Publish", Volume{Pod: pod, Volume: volume}, new(time.Duration))
}

func (s *tale) unpublish(n int, pod string, volume corev1.PersistentVolume) error {
	return s.nodes[n].Ask("Plugin.Unpublish", Volume{Pod: pod, Volume: volume}, new(time.Duration))
}

func (s *tale) write(n int, pod, volume, content string) error {
	return s.nodes[n].Write(fileOf(pod, volume, "greeting"), content)
}

// podReads says whether a pod reads what was written.
func (s *tale) podReads(n int, pod, volume, want string) error {
	return s.nodes[n].Reads(fileOf(pod, volume, "greeting"), want)
}

// pluginMounts says whether a node has so many NFS mounts.
func (s *tale) pluginMounts(n, want int) error { return s.nodes[n].Mounts(pluginDir, want) }

// refuses says whether an error says what it should.
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

// noClient: a kernel that can't says so.
func noClient(s *tale) {
	s.Chapter("A kernel without an NFS client")
	volume := s.provisioned(s.good, "none", "")
	s.Do("the error says that the kernel has none", func() error {
		return refuses(s.publish(1, "web", volume), mount.ErrNoNFSClient.Error())
	})
	s.Do("the pod's directory goes", func() error { return s.unpublish(1, "web", volume) })
	for n := 1; n <= nodes; n++ {
		s.Do(s.nodes[n].Name+" loads the kernel's module", func() error { return s.nodes[n].Ask("Plugin.LoadModules", guests.Nothing{}, &guests.Nothing{}) })
	}
}

// shared: one ReadWriteMany volume on two nodes.
//
//proves:nfs/readOnly
func shared(s *tale) {
	s.Chapter("A ReadWriteMany volume")
	volume := s.provisioned(s.good, "shared", "noatime,hard")
	for n, pod := range map[int]string{1: "writer", 2: "reader"} {
		s.Do(fmt.Sprintf("node %d mounts it", n), func() error { return s.publishSoon(n, pod, volume) })
	}
	s.Do("what a pod writes on node 1 ...", func() error { return s.write(1, "writer", "shared", "hello") })
	s.Do("... a pod reads on node 2", func() error { return s.podReads(2, "reader", "shared", "hello") })
	s.Do("a second pod on node 1 shares the mount", func() error {
		return errors.Join(s.publish(1, "second", volume), s.pluginMounts(1, 3))
	})
	s.Do("the other pod keeps it when the first goes", func() error {
		return errors.Join(s.unpublish(1, "writer", volume), s.pluginMounts(1, 2), s.podReads(1, "second", "shared", "hello"))
	})
	s.Do("a pod that may only read can't write", func() error {
		asked := Volume{Pod: "readonly", Volume: volume, Access: mount.ReadOnly}
		if err := s.nodes[2].Ask("Plugin.Publish", asked, new(time.Duration)); err != nil {
			return err
		}
		return errors.Join(refuses(s.write(2, "readonly", "shared", "no"), "read-only"), s.podReads(2, "readonly", "shared", "hello"))
	})
	s.Do("with the last pods, the mounts go", func() error {
		return errors.Join(s.unpublish(1, "second", volume), s.unpublish(2, "reader", volume), s.unpublish(2, "readonly", volume),
			s.pluginMounts(1, 0), s.pluginMounts(2, 0))
	})
}

// publishSoon waits for a server that has just been started.
func (s *tale) publishSoon(n int, pod string, volume corev1.PersistentVolume) error {
	return story.Eventually(s.Ctx, func() error { return s.publish(n, pod, volume) })
}
