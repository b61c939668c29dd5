package nfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// versions: each version of the protocol, and what is wrong with a volume.
func versions(s *spec) {
	for _, options := range []string{"nfsvers=3,nolock", "nfsvers=4.0", "nfsvers=4.1", "nfsvers=4.2"} {
		volume := provisioned(s.good, "v", options)
		scenario.Step("a volume with "+options+" is mounted, written, read and unmounted", func() error {
			s.written["v"] = options
			return errors.Join(s.publish(1, "web", volume), s.write(1, "web", "v", options), s.podReads(1, "web", "v", options),
				s.unpublish(1, "web", volume), s.pluginMounts(1, 0))
		})
	}
	for what, wrong := range map[string]struct {
		volume corev1.PersistentVolume
		says   string
	}{
		"a directory that isn't there":  {volumeOf(s.good, "missing", "nfsvers=4.2"), "no such directory"},
		"an option that NFS has not":    {volumeOf(s.good, "v", "frobnicate"), "is none of NFS"},
		"an option that hides a second": {volumeOf(s.good, "v", "sec=sys\nexec"), "is not one mount option"},
	} {
		scenario.Step("a volume with "+what+" says so", func() error {
			err := s.publish(1, "web", wrong.volume)
			return errors.Join(refuses(err, wrong.says), s.unpublish(1, "web", wrong.volume), s.pluginMounts(1, 0))
		})
	}
	silent := volumeOf(s.good, "v", "")
	silent.Spec.CSI.VolumeAttributes[stowagev1alpha1.ServerAttribute] = silentAddress
	given := scenario.Background(func() error {
		return errors.Join(refuses(s.publish(1, "web", silent), "doesn't answer"), s.unpublish(1, "web", silent))
	})
	scenario.Step("a volume of a good server comes and goes while an address without a server is tried", func() error { return s.roundTrip(1, "during") })
	scenario.Step("the silent server is given up", given)
}

// restarted: a server that crashes and comes back under load loses nothing.
func restarted(s *spec) {
	volume := provisioned(s.good, "load", "nfsvers=4.1")
	for n := 1; n <= nodes; n++ {
		scenario.Step(fmt.Sprintf("a pod on node %d writes line after line", n), func() error {
			return errors.Join(s.publish(n, "web", volume),
				s.nodes[n].Call(s.ctx, "Load.Start", fileOf("web", "load", nameOf(n)), &guest.Nothing{}), s.progress(s.nodes[n]))
		})
	}
	scenario.Step("the server is killed", s.good.Kill)
	scenario.Step("a volume of another server is mounted while it is down", func() error { return s.roundTrip(1, "during") })
	scenario.Step("the server is started again", func() error { return s.good.Start(s.ctx) })
	for n := 1; n <= nodes; n++ {
		scenario.Step(fmt.Sprintf("the pod on node %d goes on", n), func() error { return s.progress(s.nodes[n]) })
		scenario.Step("and every line that was stored is there", func() error {
			return errors.Join(s.stopLoad(s.nodes[n], filepath.Join(s.good.Share(), "load", nameOf(n))),
				s.unpublish(n, "web", volume), s.pluginMounts(n, 0))
		})
	}
}

// roundTrip has a volume of the other server mounted and unmounted, soon.
func (s *spec) roundTrip(n int, pod string) error {
	volume := provisioned(s.other, "elsewhere", "nfsvers=4.1")
	return quickly(func() error {
		return errors.Join(s.publish(n, pod, volume), s.write(n, pod, "elsewhere", pod), s.podReads(n, pod, "elsewhere", pod), s.unpublish(n, pod, volume))
	})
}

// silent: a server that hangs delays its own volumes alone, and not for ever.
func silent(s *spec) {
	volume, beside := provisioned(s.good, "hung", "nfsvers=4.1"), provisioned(s.good, "beside", "nfsvers=4.1")
	s.written["hung"], s.written["beside"] = "kept", "more"
	scenario.Step("two pods use volumes of a server", func() error {
		return errors.Join(s.publish(1, "web", volume), s.write(1, "web", "hung", "kept"),
			s.publish(1, "neighbour", beside), s.write(1, "neighbour", "beside", "kept"))
	})
	scenario.Step("the server is frozen", s.good.Freeze)
	unmounted := scenario.Background(func() error { return refuses(s.unpublish(1, "web", volume), "detached") })
	scenario.Step("a volume of another server comes and goes while one of it is unmounted", func() error { return s.roundTrip(1, "during") })
	scenario.Step("the unmount ends, and says what it did", unmounted)
	scenario.Step("the next attempt finds all gone", func() error {
		return errors.Join(s.unpublish(1, "web", volume), s.isGone(1, "web", "hung"))
	})
	scenario.Step("the server goes on", s.good.Thaw)
	scenario.Step("the neighbour's mount was left alone", func() error {
		return errors.Join(s.podReads(1, "neighbour", "beside", "kept"), s.write(1, "neighbour", "beside", "more"))
	})
	scenario.Step("the volume can be mounted again, with all that was stored", func() error {
		return errors.Join(s.publishSoon(1, "web", volume), s.podReads(1, "web", "hung", "kept"))
	})
	scenario.Step("and unmounted", func() error {
		return errors.Join(s.unpublish(1, "web", volume), s.unpublish(1, "neighbour", beside), s.pluginMounts(1, 0))
	})
}

func (s *spec) isGone(n int, pod, volume string) error {
	return s.nodes[n].IsEmpty(s.ctx, filepath.Dir(dirOf(pod, volume)))
}

// stale: a volume whose directory was removed on the server can be unmounted.
func stale(s *spec) {
	volume := provisioned(s.good, "stale", "nfsvers=3,nolock")
	scenario.Step("a pod has it mounted", func() error { return errors.Join(s.publish(1, "web", volume), s.write(1, "web", "stale", "lost")) })
	scenario.Step("its directory is removed on the server", func() error { return os.RemoveAll(filepath.Join(s.good.Share(), "stale")) })
	scenario.Step("the pod sees a stale file handle", func() error {
		return refuses(s.podReads(1, "web", "stale", "lost"), "stale")
	})
	scenario.Step("it is unmounted all the same", func() error {
		return errors.Join(s.unpublish(1, "web", volume), s.isGone(1, "web", "stale"), s.pluginMounts(1, 0))
	})
}

// cleaned: nothing is left on the nodes, and nothing is lost on the servers.
func cleaned(s *spec) {
	for n := 1; n <= nodes; n++ {
		scenario.Step(fmt.Sprintf("nothing is mounted on node %d", n), func() error { return s.pluginMounts(n, 0) })
	}
	scenario.Step("the servers have all that was written", func() error {
		var missing []error
		for file, want := range s.written {
			content, err := os.ReadFile(filepath.Join(s.good.Share(), file, "greeting"))
			if err == nil && !strings.Contains(string(content), want) {
				err = fmt.Errorf("%s has %q", file, content)
			}
			missing = append(missing, err)
		}
		return errors.Join(missing...)
	})
}
