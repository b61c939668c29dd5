package nfs_test

import (
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// Backends, and the classes that Stowage keeps for them.
const (
	goodClass  = "shared"
	otherClass = "elsewhere"
)

// volumesDir is where on a server the directories of volumes are.
func (s *server) volumesDir() string { return filepath.Join(s.Share(), "volumes") }

// directoryOf is a claim's on a server.
func (s *server) directoryOf(claim *corev1.PersistentVolumeClaim) string {
	return filepath.Join(s.volumesDir(), claim.Namespace, claim.Name)
}

// backendOf is a server's StorageBackend.
func backendOf(name string, on *server) *stowagev1alpha1.StorageBackend {
	return fixture.LocalBackend(name, func(backend *stowagev1alpha1.StorageBackend) {
		backend.Spec.Local = nil
		backend.Spec.StorageClass.AllowVolumeExpansion = true
		backend.Spec.NFS = &stowagev1alpha1.NFSBackend{
			Server: guest.Address, Path: stowagev1alpha1.AbsolutePath(on.volumesDir()),
			DirectoryTemplate: "{{namespace}}/{{name}}",
			NFSVersion:        "4.1",
			MountOptions:      []stowagev1alpha1.MountOption{stowagev1alpha1.MountOption(on.PortOption()), stowagev1alpha1.MountOption(on.MountdOption())},
		}
	})
}

// claimFor makes a claim that many pods may use, and waits until it is bound.
func (s *spec) claimFor(name, class string) (*corev1.PersistentVolumeClaim, error) {
	claim := fixture.Claim(fixture.ClaimNamed(name), fixture.InClass(class), fixture.AskingModes(corev1.ReadWriteMany))
	return claim, s.stowage.CreateBound(s.ctx, claim)
}

// pod is one on a node that uses claims.
func (s *spec) pod(name string, node int, claims ...*corev1.PersistentVolumeClaim) *corev1.Pod {
	var names []string
	for _, claim := range claims {
		names = append(names, claim.Name)
	}
	return fixture.Pod(name, s.nodes[node].Name, names...)
}

// run creates pods, and waits until their volumes are mounted.
func (s *spec) run(pods ...*corev1.Pod) error { return s.stowage.RunPods(s.ctx, pods...) }

// end deletes pods, and waits until they are gone.
func (s *spec) end(pods ...*corev1.Pod) error { return s.stowage.EndPods(s.ctx, pods...) }

// inClaim is a file of a pod's claim, on the pod's node.
func inClaim(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, file string) string {
	plugin := csi.Plugin{}
	return filepath.Join(plugin.Path(guest.VolumeDir(pod, plugin.Name(), claim.Spec.VolumeName)), file)
}

// inVolume is a file of a pod's volume of source nfs.

func inVolume(pod *corev1.Pod, volume, file string) string {
	plugin := nfs.Plugin{}
	return filepath.Join(plugin.Path(guest.VolumeDir(pod, plugin.Name(), volume)), file)
}

func (s *spec) podWrites(pod *corev1.Pod, path, content string) error {
	return s.stowage.NodeOf(pod).Write(s.ctx, path, content)
}

func (s *spec) podFinds(pod *corev1.Pod, path, want string) error {
	return s.stowage.NodeOf(pod).Reads(s.ctx, path, want)
}

// comesAndGoes has a pod with a volume of the other server begin and end, quickly.
func (s *spec) comesAndGoes(name string, node int) error {
	return quickly(func() error {
		claim, err := s.claimFor(name, otherClass)
		if err != nil {
			return err
		}
		pod := s.pod(name, node, claim)
		if err := s.run(pod); err != nil {
			return err
		}
		file := inClaim(pod, claim, "greeting")
		return errors.Join(s.podWrites(pod, file, name), s.podFinds(pod, file, name), s.end(pod), s.stowage.Delete(s.ctx, claim))
	})
}

// nothingMounted reports whether agents have nothing mounted, and no directory left.
func (s *spec) nothingMounted() error {
	for _, node := range s.nodes[1:] {
		err := scenario.Eventually(s.ctx, func() error {
			return errors.Join(node.HasNoVolumes(s.ctx), node.IsEmpty(s.ctx, filepath.Join(guest.AgentRoot, "nfs")))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", node.Name, err)
		}
	}
	return nil
}
