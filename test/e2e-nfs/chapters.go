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
)

// chapters are the story, in its order.
var chapters = []func(*story){noClient, shared, versions, restarted, silent, stale, cleaned}

// volume is one on a server, as the nfs backend makes it.
func (s *story) volume(on *server, name, options string) corev1.PersistentVolume {
	ports := fmt.Sprintf("port=%d,mountport=%d", on.port, on.port+mountdOffset)
	return corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: stowagev1alpha1.NFSDriver, VolumeHandle: name,
			VolumeAttributes: map[string]string{
				stowagev1alpha1.ServerAttribute:       serverAddress,
				stowagev1alpha1.PathAttribute:         filepath.Join(on.share(), name),
				stowagev1alpha1.MountOptionsAttribute: strings.TrimSuffix(ports+","+options, ","),
			},
		}}},
	}
}

// provisioned makes the directory of a volume as well.
func (s *story) provisioned(on *server, name, options string) corev1.PersistentVolume {
	if s.err == nil {
		s.err = os.MkdirAll(filepath.Join(on.share(), name), 0o777)
	}
	return s.volume(on, name, options)
}

func (s *story) publish(n int, pod string, volume corev1.PersistentVolume) error {
	return s.nodes[n].ask("Publish", Volume{Pod: pod, Volume: volume}, new(time.Duration))
}

func (s *story) unpublish(n int, pod string, volume corev1.PersistentVolume) error {
	return s.nodes[n].ask("Unpublish", Volume{Pod: pod, Volume: volume}, new(time.Duration))
}

func (s *story) write(n int, pod, volume, content string) error {
	return s.nodes[n].ask("Write", File{pod, volume, "greeting", content}, &Nothing{})
}

// reads says whether a pod reads what was written.
func (s *story) reads(n int, pod, volume, want string) error {
	var got string
	if err := s.nodes[n].ask("Read", File{Pod: pod, Volume: volume, Name: "greeting"}, &got); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("it reads %q, not %q", got, want)
	}
	return nil
}

// mounts says whether a node has so many NFS mounts.
func (s *story) mounts(n, want int) error {
	var got []string
	if err := s.nodes[n].ask("Mounts", Nothing{}, &got); err != nil {
		return err
	}
	if len(got) != want {
		return fmt.Errorf("%d mounts, not %d: %s", len(got), want, strings.Join(got, "; "))
	}
	return nil
}

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
func noClient(s *story) {
	s.chapter("A kernel without an NFS client")
	volume := s.provisioned(s.good, "none", "")
	s.do("the error says that the kernel has none", func() error {
		return refuses(s.publish(1, "web", volume), mount.ErrNoNFSClient.Error())
	})
	s.do("the pod's directory goes", func() error { return s.unpublish(1, "web", volume) })
	for n := 1; n <= nodes; n++ {
		s.do(s.nodes[n].name+" loads the kernel's module", func() error { return s.nodes[n].ask("LoadModules", Nothing{}, &Nothing{}) })
	}
}

// shared: one ReadWriteMany volume on two nodes.
func shared(s *story) {
	s.chapter("A ReadWriteMany volume")
	volume := s.provisioned(s.good, "shared", "noatime,hard")
	for n, pod := range map[int]string{1: "writer", 2: "reader"} {
		s.do(fmt.Sprintf("node %d mounts it", n), func() error { return s.publishSoon(n, pod, volume) })
	}
	s.do("what a pod writes on node 1 ...", func() error { return s.write(1, "writer", "shared", "hello") })
	s.do("... a pod reads on node 2", func() error { return s.reads(2, "reader", "shared", "hello") })
	s.do("a second pod on node 1 shares the mount", func() error {
		return errors.Join(s.publish(1, "second", volume), s.mounts(1, 3))
	})
	s.do("the other pod keeps it when the first goes", func() error {
		return errors.Join(s.unpublish(1, "writer", volume), s.mounts(1, 2), s.reads(1, "second", "shared", "hello"))
	})
	s.do("a pod that may only read can't write", func() error {
		asked := Volume{Pod: "readonly", Volume: volume, Access: mount.ReadOnly}
		if err := s.nodes[2].ask("Publish", asked, new(time.Duration)); err != nil {
			return err
		}
		return errors.Join(refuses(s.write(2, "readonly", "shared", "no"), "read-only"), s.reads(2, "readonly", "shared", "hello"))
	})
	s.do("with the last pods, the mounts go", func() error {
		return errors.Join(s.unpublish(1, "second", volume), s.unpublish(2, "reader", volume), s.unpublish(2, "readonly", volume),
			s.mounts(1, 0), s.mounts(2, 0))
	})
}

// publishSoon waits for a server that has just been started.
func (s *story) publishSoon(n int, pod string, volume corev1.PersistentVolume) error {
	return eventually(s.ctx, func() error { return s.publish(n, pod, volume) })
}
