package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// versions: each version of the protocol, and what is wrong with a volume.
func versions(s *story) {
	s.chapter("Versions, and volumes that can't be mounted")
	for _, options := range []string{"nfsvers=3,nolock", "nfsvers=4.0", "nfsvers=4.1", "nfsvers=4.2"} {
		volume := s.provisioned(s.good, "v", options)
		s.do("a volume with "+options+" is mounted, written, read and unmounted", func() error {
			return errors.Join(s.publish(1, "web", volume), s.write(1, "web", "v", options), s.reads(1, "web", "v", options),
				s.unpublish(1, "web", volume), s.mounts(1, 0))
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
		s.do("a volume with "+what+" says so", func() error {
			err := s.publish(1, "web", wrong.volume)
			return errors.Join(refuses(err, wrong.says), s.unpublish(1, "web", wrong.volume), s.mounts(1, 0))
		})
	}
	silent := s.volume(s.good, "v", "")
	silent.Spec.CSI.VolumeAttributes[stowagev1alpha1.ServerAttribute] = silentAddress
	given := s.background(func() error {
		return errors.Join(refuses(s.publish(1, "web", silent), "doesn't answer"), s.unpublish(1, "web", silent))
	})
	s.do("a volume of a good server comes and goes while a silent one is asked", func() error { return s.roundTrip(1, "meanwhile") })
	s.do("the silent server is given up", given)
}

// restarted: a server that crashes and comes back under load loses nothing.
func restarted(s *story) {
	s.chapter("A server that stops and starts under load")
	volume := s.provisioned(s.good, "load", "nfsvers=4.1")
	for n := 1; n <= nodes; n++ {
		s.do(fmt.Sprintf("a pod on node %d writes line after line", n), func() error {
			return errors.Join(s.publish(n, "web", volume),
				s.nodes[n].ask("StartLoad", File{Pod: "web", Volume: "load", Name: nameOf(n)}, &Nothing{}), s.progress(n))
		})
	}
	s.do("the server is killed", s.good.kill)
	s.do("a volume of another server is mounted meanwhile", func() error { return s.roundTrip(1, "meanwhile") })
	s.do("the server is started again", func() error { return s.good.start(s.ctx) })
	for n := 1; n <= nodes; n++ {
		s.do(fmt.Sprintf("the pod on node %d goes on", n), func() error { return s.progress(n) })
		s.do("and every line that was stored is there", func() error {
			var stored int64
			if err := s.nodes[n].ask("StopLoad", Nothing{}, &stored); err != nil {
				return err
			}
			return errors.Join(checkLines(filepath.Join(s.good.share(), "load", nameOf(n)), stored), s.unpublish(n, "web", volume), s.mounts(n, 0))
		})
	}
}

func nameOf(n int) string { return fmt.Sprintf("lines-%d", n) }

// progress waits until a pod has stored more.
func (s *story) progress(n int) error {
	var before int64
	if err := s.nodes[n].ask("Stored", Nothing{}, &before); err != nil {
		return err
	}
	return eventually(s.ctx, func() error {
		var now int64
		if err := s.nodes[n].ask("Stored", Nothing{}, &now); err != nil {
			return err
		}
		if now < before+3 {
			return fmt.Errorf("%d lines are stored, after %d before", now, before)
		}
		return nil
	})
}

// roundTrip has a volume of the other server mounted and unmounted, soon.
func (s *story) roundTrip(n int, pod string) error {
	volume := s.provisioned(s.other, "elsewhere", "nfsvers=4.1")
	started := time.Now()
	err := errors.Join(s.publish(n, pod, volume), s.write(n, pod, "elsewhere", pod), s.reads(n, pod, "elsewhere", pod), s.unpublish(n, pod, volume))
	if took := time.Since(started); err == nil && took > soon {
		err = fmt.Errorf("it takes %s", took)
	}
	return err
}

// silent: a server that hangs keeps nobody but its own volumes, and those not for ever.
func silent(s *story) {
	s.chapter("A server that hangs")
	volume, beside := s.provisioned(s.good, "hung", "nfsvers=4.1"), s.provisioned(s.good, "beside", "nfsvers=4.1")
	s.do("two pods use volumes of it", func() error {
		return errors.Join(s.publish(1, "web", volume), s.write(1, "web", "hung", "kept"),
			s.publish(1, "neighbour", beside), s.write(1, "neighbour", "beside", "kept"))
	})
	s.do("it is frozen", s.good.freeze)
	unmounted := s.background(func() error { return refuses(s.unpublish(1, "web", volume), "detached") })
	s.do("a volume of another server comes and goes while one of it is unmounted", func() error { return s.roundTrip(1, "meanwhile") })
	s.do("the unmount ends, and says what it did", unmounted)
	s.do("the next attempt finds all gone", func() error {
		return errors.Join(s.unpublish(1, "web", volume), s.isGone(1, "web", "hung"))
	})
	s.do("the server goes on", s.good.thaw)
	s.do("the neighbour's mount was left alone", func() error {
		return errors.Join(s.reads(1, "neighbour", "beside", "kept"), s.write(1, "neighbour", "beside", "more"))
	})
	s.do("the volume can be mounted again, with all that was stored", func() error {
		return errors.Join(s.publishSoon(1, "web", volume), s.reads(1, "web", "hung", "kept"))
	})
	s.do("and unmounted", func() error {
		return errors.Join(s.unpublish(1, "web", volume), s.unpublish(1, "neighbour", beside), s.mounts(1, 0))
	})
}

func (s *story) isGone(n int, pod, volume string) error {
	exists, asked := true, Volume{Pod: pod}
	asked.Volume.Name = volume
	if err := s.nodes[n].ask("Exists", asked, &exists); err != nil {
		return err
	}
	if exists {
		return errors.New("the pod's directory is still there")
	}
	return nil
}

// stale: a directory that went from the server doesn't keep its pods.
func stale(s *story) {
	s.chapter("A directory that is removed while it is mounted")
	volume := s.provisioned(s.good, "stale", "nfsvers=3,nolock")
	s.do("a pod has it mounted", func() error { return errors.Join(s.publish(1, "web", volume), s.write(1, "web", "stale", "lost")) })
	s.do("somebody removes it on the server", func() error { return os.RemoveAll(filepath.Join(s.good.share(), "stale")) })
	s.do("the pod sees a stale file handle", func() error {
		return refuses(s.reads(1, "web", "stale", "lost"), "stale")
	})
	s.do("it is unmounted all the same", func() error {
		return errors.Join(s.unpublish(1, "web", volume), s.isGone(1, "web", "stale"), s.mounts(1, 0))
	})
}

// cleaned: nothing is left on the nodes, and nothing is lost on the servers.
func cleaned(s *story) {
	s.chapter("Afterwards")
	for n := 1; n <= nodes; n++ {
		s.do(fmt.Sprintf("nothing is mounted on node %d", n), func() error { return s.mounts(n, 0) })
	}
	s.do("the servers have all that was written", func() error {
		var missing []error
		for file, want := range map[string]string{"shared": "hello", "hung": "kept", "beside": "more", "v": "nfsvers=4.2"} {
			content, err := os.ReadFile(filepath.Join(s.good.share(), file, "greeting"))
			if err == nil && !strings.Contains(string(content), want) {
				err = fmt.Errorf("%s has %q", file, content)
			}
			missing = append(missing, err)
		}
		return errors.Join(missing...)
	})
}
