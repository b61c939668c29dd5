package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilexec "k8s.io/utils/exec"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

const (
	mebibyte = 1 << 20
)

// imageVolume makes an image below the agent's base, and a claim that is bound to it.
func (p *process) imageVolume(t *testing.T, name, fsType string, bytes int64) {
	t.Helper()
	dir := filepath.Join(filepath.Dir(p.root), "base", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	image, mode := filepath.Join(dir, stowagev1alpha1.ImageFile), corev1.PersistentVolumeFilesystem
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, bytes); err != nil {
		t.Fatal(err)
	}
	if fsType == "" {
		mode = corev1.PersistentVolumeBlock
	} else if err := filesystem.NewFileSystems(utilexec.New()).Format(t.Context(), image, fsType, bytes); err != nil {
		t.Fatal(err)
	}
	p.bindTo(t, p.createClaim(t, name, mode, bytes), dir)
}

// createClaim makes a claim that names a volume of its own name.
func (p *process) createClaim(t *testing.T, name string, mode corev1.PersistentVolumeMode, bytes int64) *corev1.PersistentVolumeClaim {
	t.Helper()
	class := ""
	claim, err := p.client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: &class, VolumeMode: &mode, VolumeName: name,
			Resources: corev1.VolumeResourceRequirements{Requests: storage(bytes)},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

func storage(bytes int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(bytes, resource.BinarySI)}
}

// bindTo binds a claim to the image in a directory.
func (p *process) bindTo(t *testing.T, claim *corev1.PersistentVolumeClaim, dir string) {
	t.Helper()
	p.bindToSource(t, claim, corev1.CSIPersistentVolumeSource{
		Driver: stowagev1alpha1.LocalDriver, VolumeHandle: filepath.Base(dir), VolumeAttributes: map[string]string{
			stowagev1alpha1.PathAttribute: dir, stowagev1alpha1.LayoutAttribute: string(stowagev1alpha1.LayoutImage),
		},
	})
}

// bindToSource makes a claim's volume, as the manager leaves both.
func (p *process) bindToSource(t *testing.T, claim *corev1.PersistentVolumeClaim, source corev1.CSIPersistentVolumeSource) {
	t.Helper()
	size := claim.Spec.Resources.Requests
	_, err := p.client.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode, Capacity: size,
			ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &source},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, size
	if _, err := p.client.CoreV1().PersistentVolumeClaims("default").UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// attached counts the images that have a loop device.
func (p *process) attached(t *testing.T) int {
	t.Helper()
	images, err := filepath.Glob(filepath.Join(filepath.Dir(p.root), "base", "*", stowagev1alpha1.ImageFile))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, path := range images {
		if loop := p.loopOf(t, path); loop != nil {
			loop.Close()
			count++
		}
	}
	return count
}

// loopOf is the loop device of an image, nil if it has none.
func (p *process) loopOf(t *testing.T, path string) *loopdev.Loop {
	t.Helper()
	image, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	loop, err := loopdev.Find(image)
	if err != nil {
		t.Fatal(err)
	}
	return loop
}

// isClean reports whether nothing is left on the node of any pod.
func (p *process) isClean(t *testing.T) bool {
	t.Helper()
	staged, err := filepath.Glob(filepath.Join(p.root, "plugins", "kubernetes.io", "csi", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return p.podDirs() == 0 && p.mounted(t) == 0 && len(staged) == 0 && p.attached(t) == 0
}

// mustKeep writes a file into the volume, and fails unless those of earlier rounds
// are there.
func (p *process) mustKeep(t *testing.T, round int) {
	t.Helper()
	seen, err := filepath.Glob(filepath.Join(p.root, "pods", "*", "volumes", "kubernetes.io~csi", "files", "mount"))
	if err != nil || len(seen) == 0 {
		t.Fatal(seen, err)
	}
	if err := os.WriteFile(filepath.Join(seen[0], fmt.Sprint("round-", round)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if kept, err := filepath.Glob(filepath.Join(seen[len(seen)-1], "round-*")); err != nil || len(kept) != round+1 {
		t.Errorf("of %d files %d are there (%v)", round+1, len(kept), err)
	}
}

// podWith is a pod that uses these claims.
func podWith(name string, claims ...string) *corev1.Pod {
	pod := podInMemory(0, 0)
	pod.Name, pod.Spec.Volumes = name, nil
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return pod
}

//proves:csi/crash
func TestAnAgentThatIsKilledAtAnyPointLosesAndLeaksNoImage(t *testing.T) {
	mounttest.NeedsRoot(t)
	// For the device the record which image it is, for the file system its stage, and for each
	// of two pods both volumes.
	const all = 1 + 1 + 2*2
	server := startServer(t)
	p := newProcess(t, server)
	createNode(t, p.client)
	claims := []string{"files", "device"}
	p.imageVolume(t, "files", "ext4", 16*mebibyte)
	p.imageVolume(t, "device", "", 16*mebibyte)
	pods := p.client.CoreV1().Pods("default")

	for round := range all {
		t.Logf("round %d", round)
		p.start(t)
		for i := range 2 {
			if _, err := pods.Create(t.Context(), podWith(fmt.Sprintf("pod-%d", i), claims...), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		await(t, "some of it is mounted", func() bool { return p.mounted(t) >= round })
		p.kill()
		p.start(t)
		await(t, "everything is mounted once", func() bool { return p.mounted(t) == all && p.attached(t) == len(claims) })

		p.mustKeep(t, round)
		deleteAll(t.Context(), t, p.client)
		await(t, "some of it is unmounted", func() bool { return p.mounted(t) <= all-round })
		p.kill()
		p.start(t)
		await(t, "nothing is left on the node", func() bool { return p.isClean(t) })
		await(t, "nothing is left of the pods", func() bool {
			left, err := pods.List(t.Context(), metav1.ListOptions{})
			return err == nil && len(left.Items) == 0
		})
		p.kill()
	}
}
