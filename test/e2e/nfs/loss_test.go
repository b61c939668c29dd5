package nfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// replaced: a directory that is removed on the server and made again.
func replaced(s *spec) {
	var claim *corev1.PersistentVolumeClaim
	var first, second *corev1.Pod
	scenario.Step("a pod uses a volume", func() (err error) {
		if claim, err = s.claimFor("replaced", goodClass); err != nil {
			return err
		}
		first, second = s.pod("first", 1, claim), s.pod("second", 1, claim)
		if err := s.run(first); err != nil {
			return err
		}
		return s.podWrites(first, inClaim(first, claim, "greeting"), "lost")
	})
	scenario.Step("its directory is removed, and made again", func() error {
		dir := s.good.directoryOf(claim)
		return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o770))
	})
	scenario.Soon(s.ctx, "the pod sees a stale file handle", func() error {
		return refuses(s.podFinds(first, inClaim(first, claim, "greeting"), "lost"), "stale")
	})
	scenario.Step("an event of a second pod on the node says what happened and what to do", func() error {
		if err := s.stowage.Create(s.ctx, second); err != nil {
			return err
		}
		return s.stowage.AwaitEvent(s.ctx, second.Name, "FailedMount", "the server has lost the directory that is mounted: end the pods")
	})
	scenario.Step("both are ended", func() error { return s.end(first, second) })
	scenario.Step("a pod made again uses the new directory", func() error {
		third := s.pod("third", 1, claim)
		if err := s.run(third); err != nil {
			return err
		}
		file := inClaim(third, claim, "greeting")
		return errors.Join(s.podWrites(third, file, "new"), holds(filepath.Join(s.good.directoryOf(claim), "greeting"), "new"), s.end(third))
	})
	scenario.Step("the claim goes, with the directory", func() error {
		if err := s.stowage.Delete(s.ctx, claim); err != nil {
			return err
		}
		return s.soonLacks(s.good.directoryOf(claim))
	})
}

// deleted: what becomes of a volume's files when its claim goes.
func deleted(s *spec) {
	for _, policy := range []struct {
		onDelete stowagev1alpha1.NFSDeletion
		ends     string
		check    func(name string) error
	}{
		{stowagev1alpha1.NFSArchive, "in the archive", s.isArchived},
		{stowagev1alpha1.NFSRetain, "where they are", func(name string) error {
			return holds(filepath.Join(s.good.volumesDir(), corev1.NamespaceDefault, name, "greeting"), name)
		}},
		{stowagev1alpha1.NFSDelete, "gone", func(name string) error {
			return lacks(filepath.Join(s.good.volumesDir(), corev1.NamespaceDefault, name))
		}},
	} {
		name := "of-" + string(policy.onDelete[0]|0x20) + string(policy.onDelete[1:])
		scenario.Step(fmt.Sprintf("with onDelete: %s, a deleted claim's files are %s", policy.onDelete, policy.ends), func() error {
			if err := s.deletesBy(name, policy.onDelete); err != nil {
				return err
			}
			return scenario.Eventually(s.ctx, func() error { return policy.check(name) })
		})
	}
	scenario.Step("the precious files beside are as they were", func() error { return holds(s.canary(), "precious") })
}

// deletesBy sets what becomes of files, has a pod write some, and deletes pod and
// claim.
func (s *spec) deletesBy(name string, onDelete stowagev1alpha1.NFSDeletion) error {
	backend := &stowagev1alpha1.StorageBackend{}
	backend.Name = goodClass
	err := s.stowage.Change(s.ctx, backend, func() { backend.Spec.NFS.OnDelete = onDelete })
	if err == nil {
		err = scenario.Eventually(s.ctx, func() error { return s.stowage.BackendIsReady(s.ctx, goodClass) })
	}
	if err != nil {
		return err
	}
	claim, err := s.claimFor(name, goodClass)
	if err != nil {
		return err
	}
	if onDelete == stowagev1alpha1.NFSRetain {
		s.retained = append(s.retained, name)
	}
	pod, volume := s.pod(name, 2, claim), &corev1.PersistentVolume{}
	volume.Name = claim.Spec.VolumeName
	if err := s.run(pod); err != nil {
		return err
	}
	return errors.Join(s.podWrites(pod, inClaim(pod, claim, "greeting"), name), s.end(pod),
		s.stowage.Delete(s.ctx, claim), s.stowage.AwaitGone(s.ctx, volume))
}

func (s *spec) isArchived(name string) error {
	found, err := filepath.Glob(filepath.Join(s.good.volumesDir(), ".stowage", "archived", "*"+name+"*", "greeting"))
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("the archive has %q", found)
	}
	return errors.Join(holds(found[0], name), lacks(filepath.Join(s.good.volumesDir(), corev1.NamespaceDefault, name)))
}

// left: in the end nothing is, but what was to be kept.
func left(s *spec) {
	scenario.Soon(s.ctx, "no volume object and no claim is left", func() error {
		volumes, claims := &corev1.PersistentVolumeList{}, &corev1.PersistentVolumeClaimList{}
		err := errors.Join(s.stowage.Client.List(s.ctx, volumes), s.stowage.Client.List(s.ctx, claims))
		if left := len(volumes.Items) + len(claims.Items); err == nil && left > 0 {
			err = fmt.Errorf("%d volumes, %d claims", len(volumes.Items), len(claims.Items))
		}
		return err
	})
	scenario.Step("nothing is left on the nodes", s.nothingMounted)
	scenario.Step("the servers have what was to be kept, and no more", func() error {
		return errors.Join(
			hasOnly(filepath.Join(s.good.volumesDir(), corev1.NamespaceDefault), s.retained...), holds(s.canary(), "precious"),
			hasOnly(filepath.Join(s.other.volumesDir(), corev1.NamespaceDefault)))
	})
	scenario.Step("the backends can go", func() error {
		backends := &stowagev1alpha1.StorageBackendList{}
		if err := s.stowage.Client.List(s.ctx, backends); err != nil {
			return err
		}
		var objects []client.Object
		for i := range backends.Items {
			objects = append(objects, &backends.Items[i])
		}
		return s.stowage.Delete(s.ctx, objects...)
	})
	scenario.Step("the manager has run all the time", func() error {
		select {
		case <-s.stowage.Manager.Ended():
			return fmt.Errorf("it ended: %w", s.stowage.Manager.Err())
		default:
			return nil
		}
	})
}
