package demo_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
)

const mebibyte = 1 << 20

// images: volumes that keep to their size, grow while pods use them, and can be
// block devices.
func images(s *scenario) {
	if _, err := exec.LookPath("mkfs.xfs"); err != nil {
		s.notShown("mkfs.xfs is missing here: install xfsprogs.")
	}
	s.apply("images.yaml", nil)
	s.check("the StorageBackend is Ready", "storagebackend/images", s.backendIs("images", metav1.ConditionTrue, ""))
	s.keepToSize()
	s.blockDevice()
	s.kubectl("delete", "storagebackend/images", "--wait=false")
	s.check("the StorageBackend can be deleted", "storagebackend/images", s.isGone("images", &stowagev1alpha1.StorageBackend{}))
}

// keepToSize: a write beyond a volume's size fails; then the volume grows.
func (s *scenario) keepToSize() {
	var point mount.Point
	s.apply("claim.yaml", values{"NAME": "db", "CLASS": "images", "SIZE": "300Mi"})
	s.apply("pod.yaml", values{"NAME": "db", "CLAIM": "db"})
	volume := "pvc-" + string(s.claim("db").UID)
	image := filepath.Join(s.cluster.Folder.Disks(), "images", volume, stowagev1alpha1.ImageFile)
	s.check("the claim is Bound", "pvc/db", s.claimIsBound("db", volume))
	s.check("it is mounted in the pod's directory", "pod/db", s.mounted("db", volume, &point))
	s.write(point.Path)
	s.check("a write of 400 MiB into it fails with ENOSPC", "pod/db", s.isFull(point.Path, 400*mebibyte))
	s.say("It grows while the pod uses it:")
	s.kubectl("patch", "pvc/db", "--type=merge", "-p", `{"spec":{"resources":{"requests":{"storage":"600Mi"}}}}`)
	s.check("the claim has 600Mi, and says so", "pvc/db", s.claimHas("db", "600Mi"))
	s.check("its node grew the file system", "pvc/db", s.eventTells("db", "FileSystemResizeSuccessful"))
	s.do(func() error { return fill(point.Path, 400*mebibyte) })
	s.say("400 MiB fit.")
	s.check("what was there is there", "pod/db", s.greets(point.Path))
	s.kubectl("delete", "pod/db", "pvc/db", "--wait=false")
	s.check("the volume is gone", "pv/"+volume, s.isGone(volume, &corev1.PersistentVolume{}))
	s.check("its image is gone from the disk", "nodevolume/"+volume, s.exists(image, false))
}

// blockDevice: a pod gets a device of exactly the asked size.
func (s *scenario) blockDevice() {
	s.say("A volume can be a block device as well:")
	s.apply("device.yaml", values{"NAME": "raw", "SIZE": "64Mi"})
	volume, pod := "pvc-"+string(s.claim("raw").UID), &corev1.Pod{}
	s.do(func() error { return s.get("raw", pod) })
	path := filepath.Join(filepath.Dir(s.cluster.PodDir(pod)), "volumeDevices", "kubernetes.io~csi", volume)
	s.check("the pod has a device of 64 MiB", "pod/raw", isDevice(path, 64*mebibyte))
	s.kubectl("delete", "pod/raw", "pvc/raw", "--wait=false")
	s.check("the volume is gone", "pv/"+volume, s.isGone(volume, &corev1.PersistentVolume{}))
	s.check("no loop device is left", "pv/"+volume, s.nothingAttached())
}

// isFull holds if a file of this size doesn't fit into a folder.
func (s *scenario) isFull(dir string, bytes int) condition {
	return func() error {
		if err := fill(dir, bytes); !errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("writing %d bytes into %s gave %w", bytes, s.short(dir), err)
		}
		return nil
	}
}

// fill writes a file of this size into a folder, and removes it.
func fill(dir string, bytes int) (err error) {
	file, err := os.Create(filepath.Join(dir, "large"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	for block := make([]byte, mebibyte); bytes > 0; bytes -= len(block) {
		if _, err := file.Write(block); err != nil {
			return err
		}
	}
	return file.Sync()
}

// isDevice holds if a path is a block device that has exactly this size.
func isDevice(path string, bytes int64) condition {
	return func() error {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		if end, err := file.Seek(0, 2); err != nil || end != bytes {
			return fmt.Errorf("%s has %d bytes: %w", path, end, err)
		}
		if _, err := file.WriteString("beyond"); !errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("writing beyond its end gave %w", err)
		}
		return nil
	}
}

// nothingAttached holds if no loop device shows a file of the demo's.
func (s *scenario) nothingAttached() condition {
	return func() error {
		shown, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
		for _, entry := range shown {
			content, _ := os.ReadFile(entry) // it may have gone since the listing
			if below, err := filepath.Rel(s.cluster.Folder.Root(), string(content)); err == nil && filepath.IsLocal(below) {
				return fmt.Errorf("%s shows %s", entry, content)
			}
		}
		return err
	}
}
