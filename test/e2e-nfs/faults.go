package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/guests"
)

// versions: each version of the protocol, and what is wrong with a volume.
//
//proves:nfs/versions nfs/mountOptions
func versions(s *tale) {
	s.Chapter("Versions, and volumes that can't be mounted")
	for _, options := range []string{"nfsvers=3,nolock", "nfsvers=4.0", "nfsvers=4.1", "nfsvers=4.2"} {
		volume := s.provisioned(s.good, "v", options)
		s.Do("a volume with "+options+" is mounted, written, read and unmounted", func() error {
			return errors.Join(s.publish(1, "web", volume), s.write(1, "web", "v", options), s.podReads(1, "web", "v", options),
				s.unpublish(1, "web", volume), s.pluginMounts(1, 0))
		})
	}
	for what, wrong := range map[string]struct {
		volume corev1.PersistentVolume
		says   string
	}{
		"a directory that isn't there":  {s.volume(s.good, "missing", "nfsvers=4.2"), "no such directory"},
		"an option that NFS has not":    {s.volume(s.good, "v", "frobnicate"), "is none of NFS"},
		"an option that hides a second": {s.volume(s.good, "v", "sec=sys\nexec"), "is not one mount option"},
	} {
		s.Do("a volume with "+what+" says so", func() error {
			err := s.publish(1, "web", wrong.volume)
			return errors.Join(refuses(err, wrong.says), s.unpublish(1, "web", wrong.volume), s.pluginMounts(1, 0))
		})
	}
	silent := s.volume(s.good, "v", "")
	silent.Spec.CSI.VolumeAttributes[stowagev1alpha1.ServerAttribute] = silentAddress
	given := s.Background(func() error {
		return errors.Join(refuses(s.publish(1, "web", silent), "doesn't answer"), s.unpublish(1, "web", silent))
	})
	s.Do("a volume of a good server comes and goes while a silent one is asked", func() error { return s.roundTrip(1, "meanwhile") })
	s.Do("the silent server is given up", given)
}

// restarted: a server that crashes and comes back under load loses nothing.
func restarted(s *tale) {
	s.Chapter("A server that stops and starts under load")
	volume := s.provisioned(s.good, "load", "nfsvers=4.1")
	for n := 1; n <= nodes; n++ {
		s.Do(fmt.Sprintf("a pod on node %d writes line after line", n), func() error {
			return errors.Join(s.publish(n, "web", volume),
				s.nodes[n].Ask("Load.Start", fileOf("web", "load", nameOf(n)), &guests.Nothing{}), s.progress(s.nodes[n]))
		})
	}
	s.Do("the server is killed", s.good.Kill)
	s.Do("a volume of another server is mounted meanwhile", func() error { return s.roundTrip(1, "meanwhile") })
	s.Do("the server is started again", func() error { return s.good.Start(s.Ctx) })
	for n := 1; n <= nodes; n++ {
		s.Do(fmt.Sprintf("the pod on node %d goes on", n), func() error { return s.progress(s.nodes[n]) })
		s.Do("and every line that was stored is there", func() error {
			return errors.Join(s.stopLoad(s.nodes[n], filepath.Join(s.good.Share(), "load", nameOf(n))),
				s.unpublish(n, "web", volume), s.pluginMounts(n, 0))
		})
	}
}

// roundTrip has a volume of the other server mounted and unmounted, soon.
func (s *tale) roundTrip(n int, pod string) error {
	volume := s.provisioned(s.other, "elsewhere", "nfsvers=4.1")
	return quickly(func() error {
		return errors.Join(s.publish(n, pod, volume), s.write(n, pod, "elsewhere", pod), s.podReads(n, pod, "elsewhere", pod), s.unpublish(n, pod, volume))
	})
}

// silent: a server that hangs keeps nobody but its own volumes, and those not for ever.
//
//proves:nfs/hangs
func silent(s *tale) {
	s.Chapter("A server that hangs")
	volume, beside := s.provisioned(s.good, "hung", "nfsvers=4.1"), s.provisioned(s.good, "beside", "nfsvers=4.1")
	s.Do("two pods use volumes of it", func() error {
		return errors.Join(s.publish(1, "web", volume), s.write(1, "web", "hung", "kept"),
			s.publish(1, "neighbour", beside), s.write(1, "neighbour", "beside", "kept"))
	})
	s.Do("it is frozen", s.good.Freeze)
	unmounted := s.Background(func() error { return refuses(s.unpublish(1, "web", volume), "detached") })
	s.Do("a volume of another server comes and goes while one of it is unmounted", func() error { return s.roundTrip(1, "meanwhile") })
	s.Do("the unmount ends, and says what it did", unmounted)
	s.Do("the next attempt finds all gone", func() error {
		return errors.Join(s.unpublish(1, "web", volume), s.isGone(1, "web", "hung"))
	})
	s.Do("the server goes on", s.good.Thaw)
	s.Do("the neighbour's mount was left alone", func() error {
		return errors.Join(s.podReads(1, "neighbour", "beside", "kept"), s.write(1, "neighbour", "beside", "more"))
	})
	s.Do("the volume can be mounted again, with all that was stored", func() error {
		return errors.Join(s.publishSoon(1, "web", volume), s.podReads(1, "web", "hung", "kept"))
	})
	s.Do("and unmounted", func() error {
		return errors.Join(s.unpublish(1, "web", volume), s.unpublish(1, "neighbour", beside), s.pluginMounts(1, 0))
	})
}

func (s *tale) isGone(n int, pod, volume string) error {
	return s.nodes[n].IsEmpty(filepath.Dir(dirOf(pod, volume)))
}

// stale: a directory that went from the server doesn't keep its pods.
func stale(s *tale) {
	s.Chapter("A directory that is removed while it is mounted")
	volume := s.provisioned(s.good, "stale", "nfsvers=3,nolock")
	s.Do("a pod has it mounted", func() error { return errors.Join(s.publish(1, "web", volume), s.write(1, "web", "stale", "lost")) })
	s.Do("somebody removes it on the server", func() error { return os.RemoveAll(filepath.Join(s.good.Share(), "stale")) })
	s.Do("the pod sees a stale file handle", func() error {
		return refuses(s.podReads(1, "web", "stale", "lost"), "stale")
	})
	s.Do("it is unmounted all the same", func() error {
		return errors.Join(s.unpublish(1, "web", volume), s.isGone(1, "web", "stale"), s.pluginMounts(1, 0))
	})
}

// cleaned: nothing is left on the nodes, and nothing is lost on the servers.
func cleaned(s *tale) {
	s.Chapter("Afterwards")
	for n := 1; n <= nodes; n++ {
		s.Do(fmt.Sprintf("nothing is mounted on node %d", n), func() error { return s.pluginMounts(n, 0) })
	}
	s.Do("the servers have all that was written", func() error {
		var missing []error
		for file, want := range map[string]string{"shared": "hello", "hung": "kept", "beside": "more", "v": "nfsvers=4.2"} {
			content, err := os.ReadFile(filepath.Join(s.good.Share(), file, "greeting"))
			if err == nil && !strings.Contains(string(content), want) {
				err = fmt.Errorf("%s has %q", file, content)
			}
			missing = append(missing, err)
		}
		return errors.Join(missing...)
	})
}
