package nfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// installed: a cluster of both nodes, with both servers as backends.
func installed(s *spec) {
	scenario.Step("etcd, kube-apiserver, the manager and an agent on each node start", func() (err error) {
		s.stowage, err = guest.StartStowage(s.ctx, s.folder, s.nodes[1:], guest.Differences{})
		return err
	})
	scenario.Step("an administrator keeps precious files beside the volumes", func() error {
		return errors.Join(os.MkdirAll(s.good.volumesDir(), 0o755), os.MkdirAll(s.other.volumesDir(), 0o755),
			os.Mkdir(filepath.Join(s.good.Share(), "precious"), 0o700), os.WriteFile(s.canary(), []byte("precious"), 0o600))
	})
	scenario.Step("a StorageBackend is made for each server", func() error {
		return s.stowage.Create(s.ctx, backendOf(goodClass, s.good), backendOf(otherClass, s.other))
	})
	for _, name := range []string{goodClass, otherClass} {
		scenario.Soon(s.ctx, "backend "+name+" is Ready", func() error { return s.stowage.BackendIsReady(s.ctx, name) })
	}
}

func (s *spec) canary() string { return filepath.Join(s.good.Share(), "precious", "file") }

// claimed: one claim, made on demand, for pods on both nodes.
func claimed(s *spec) {
	var claim *corev1.PersistentVolumeClaim
	scenario.Step("a ReadWriteMany claim is given a directory", func() (err error) {
		if claim, err = s.claimFor("data", goodClass); err == nil {
			_, err = os.Stat(s.good.directoryOf(claim))
		}
		return err
	})
	var writer, reader *corev1.Pod
	scenario.Step("a pod on each node has it mounted", func() error {
		writer, reader = s.pod("writer", 1, claim), s.pod("reader", 2, claim)
		return s.run(writer, reader)
	})
	scenario.Step("what one writes ...", func() error { return s.podWrites(writer, inClaim(writer, claim, "greeting"), "hello") })
	scenario.Step("... the other reads", func() error { return s.podFinds(reader, inClaim(reader, claim, "greeting"), "hello") })
	scenario.Step("the claim requests more", func() error {
		return s.stowage.Change(s.ctx, claim, func() { claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi") })
	})
	scenario.Soon(s.ctx, "claim and volume have the new size, with nothing left for a node to do", func() error { return s.hasGrown(claim, "2Gi") })
	scenario.Step("the pods go on", func() error {
		return errors.Join(s.podWrites(reader, inClaim(reader, claim, "greeting"), "hello again"),
			s.podFinds(writer, inClaim(writer, claim, "greeting"), "hello again"))
	})
	scenario.Step("pods, claim and directory go", func() error {
		if err := errors.Join(s.end(writer, reader), s.stowage.Delete(s.ctx, claim)); err != nil {
			return err
		}
		return s.soonLacks(s.good.directoryOf(claim))
	})
	scenario.Step("nothing is mounted any more", s.nothingMounted)
}

func (s *spec) hasGrown(claim *corev1.PersistentVolumeClaim, size string) error {
	volume := &corev1.PersistentVolume{}
	err := errors.Join(s.stowage.Client.Get(s.ctx, client.ObjectKeyFromObject(claim), claim),
		s.stowage.Client.Get(s.ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume))
	if err != nil {
		return err
	}
	want, has, given := resource.MustParse(size), claim.Status.Capacity.Storage(), volume.Spec.Capacity.Storage()
	if has.Cmp(want) != 0 || given.Cmp(want) != 0 || len(claim.Status.AllocatedResourceStatuses) > 0 {
		return fmt.Errorf("claim %s, volume %s, not %s; %v %+v", has, given, size, claim.Status.AllocatedResourceStatuses, claim.Status.Conditions)
	}
	if claim.Annotations[stowagev1alpha1.CapacityAnnotation] != stowagev1alpha1.CapacityAdvisory {
		return fmt.Errorf("the size isn't labelled as advisory: %v", claim.Annotations)
	}
	return nil
}

// named: volumes of a server's directory that Stowage didn't make.
func named(s *spec) {
	const greeting = "hello from before"
	dir := filepath.Join(s.good.Share(), "legacy")
	scenario.Step("a server has had a directory for long", func() error {
		return errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "greeting"), []byte(greeting), 0o666))
	})
	source := &corev1.NFSVolumeSource{Server: guest.Address, Path: dir}
	inline := s.pod("inline", 1)
	inline.Spec.Volumes = []corev1.Volume{{Name: "legacy", VolumeSource: corev1.VolumeSource{NFS: source}}}
	scenario.Step("a pod that names it has it mounted", func() error {
		return errors.Join(s.run(inline), s.podFinds(inline, inVolume(inline, "legacy", "greeting"), greeting))
	})
	volume := fixture.Volume("legacy-volume", fixture.WithModes(corev1.ReadWriteMany))
	volume.Spec.HostPath, volume.Spec.NFS, volume.Spec.MountOptions = nil, source, []string{"nfsvers=3", "nolock", s.good.MountdOption()}
	claim := fixture.Claim(fixture.ClaimNamed("legacy"), fixture.AskingFor(volume.Name), fixture.AskingModes(corev1.ReadWriteMany))
	static := s.pod("static", 2, claim)
	scenario.Step("a claim is bound to a volume object that names it", func() error {
		return errors.Join(s.stowage.Create(s.ctx, volume, claim), s.stowage.AwaitBound(s.ctx, claim))
	})
	scenario.Step("its pod, on the other node and with another version, sees the same", func() error {
		if err := s.run(static); err != nil {
			return err
		}
		file := inVolume(static, volume.Name, "greeting")
		return errors.Join(s.podFinds(static, file, greeting), s.podWrites(static, file, "changed"))
	})
	scenario.Soon(s.ctx, "and what it writes the first pod reads", func() error {
		return s.podFinds(inline, inVolume(inline, "legacy", "greeting"), "changed")
	})
	scenario.Step("pods, claim and volume object go, and the directory stays", func() error {
		return errors.Join(s.end(inline, static), s.stowage.Delete(s.ctx, claim, volume), exists(filepath.Join(dir, "greeting")))
	})
	scenario.Step("nothing is mounted any more", s.nothingMounted)
}
