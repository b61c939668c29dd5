package demo_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

// everyKind: one pod with a volume of every type.
func everyKind(s *scenario) {
	if _, err := exec.LookPath("mkfs.xfs"); err != nil || cluster.InsideNamespace() {
		s.notShown("images need root, and mkfs.xfs: install xfsprogs.")
	}
	prepared, host := s.inDisks("prepared"), s.inDisks("host")
	s.do(func() error { return os.Mkdir(prepared, 0o755) })
	s.apply("every_kind.yaml", nil)
	s.apply("every_kind_pod.yaml", nil)
	s.check("all 12 volumes are mounted, says the pod", "pod/collector", s.volumesReady("collector", 12))
	s.say("A share isn't among them, because that takes a kernel with an NFS client:\n" +
		"`make e2e-nfs` brings one. A disk of a cloud was in (j).")
	pod := s.collector()
	pod.writtenTo(prepared, host)
	pod.shown()
	pod.followed()
	s.takeAway(pod)
	s.check("what it wrote to the node's own directories is there", "node/"+cluster.NodeName, all(s.greets(prepared), s.greets(host)))
}

// collector is the pod with all volumes, and where they are.
type collector struct {
	*scenario
	dir    string
	claims map[string]string
}

func (s *scenario) collector() *collector {
	pod, c := &corev1.Pod{}, &collector{scenario: s, claims: map[string]string{}}
	s.do(func() error { return s.get("collector", pod) })
	c.dir = filepath.Dir(s.cluster.PodDir(pod))
	for _, claim := range []string{"directory", "image", "device", "collector-ephemeral"} {
		c.claims[claim] = "pvc-" + string(s.claim(claim).UID)
	}
	return c
}

// volume is where the pod has a volume of its own.
func (c *collector) volume(kind, name string) string {
	return filepath.Join(c.dir, "volumes", "kubernetes.io~"+kind, name)
}

// claimed is where the pod has a claim's volume.
func (c *collector) claimed(claim string) string {
	return filepath.Join(c.volume("csi", c.claims[claim]), "mount")
}

// part is where the main container has a part of a volume.
func (c *collector) part(volume, index string) string {
	return filepath.Join(c.dir, "volume-subpaths", volume, "main", index)
}

// writtenTo: what can be written can be read, where it is kept.
func (c *collector) writtenTo(prepared, host string) {
	scratch, memory := c.volume("empty-dir", "scratch"), c.volume("empty-dir", "memory")
	c.say("What it writes:")
	for _, volume := range []struct{ what, dir, kept string }{
		{"an emptyDir on the disk has it", scratch, scratch},
		{"a part of a volume, by subPath, is in that volume", c.part("scratch", "1"), filepath.Join(scratch, "logs")},
		{"an emptyDir in memory has it", memory, memory},
		{"a hostPath is the node's directory", c.volume("host-path", "host"), host},
		{"a local volume is the directory that was prepared", c.volume("local-volume", "prepared"), prepared},
		{"a claim has a directory of the backend", c.claimed("directory"), c.onDisk(c.claims["directory"])},
		{"so has a generic ephemeral volume", c.claimed("collector-ephemeral"), c.onDisk(c.claims["collector-ephemeral"])},
		{"a claim has an image of the backend", c.claimed("image"), c.claimed("image")},
	} {
		c.write(volume.dir)
		c.check(volume.what, "pod/collector", c.greets(volume.kept))
	}
	device := filepath.Join(c.dir, "volumeDevices", "kubernetes.io~csi", c.claims["device"])
	c.check("a claim in mode Block is a device of 64 MiB", "pod/collector", isDevice(device, 64*mebibyte))
	c.check("in memory there is no more than 1 MiB", "pod/collector", c.isFull(memory, 2*mebibyte))
}

// shown: what is made of objects has what they have.
func (c *collector) shown() {
	c.say("What it is shown:")
	for _, file := range []struct{ what, path, want string }{
		{"a configMap", filepath.Join(c.volume("configmap", "settings"), "speed"), "slow"},
		{"a part of it, a file,", c.part("settings", "4"), "slow"},
		{"a secret", filepath.Join(c.volume("secret", "password"), "password"), "hush"},
		{"a label of the pod", filepath.Join(c.volume("downward-api", "labels"), "color"), "blue"},
		{"a projected configMap", filepath.Join(c.volume("projected", "identity"), "speed"), "slow"},
	} {
		c.check(file.what+" is read", "pod/collector", reads(file.path, file.want))
	}
	c.check("a token is beside that", "pod/collector", c.exists(filepath.Join(c.volume("projected", "identity"), "token"), true))
	c.check("secret and token are in memory only", "pod/collector", inMemory(c.volume("secret", "password"), c.volume("projected", "identity")))
	c.check("what the container is to see is written down", "pod/collector", c.exists(filepath.Join(c.dir, "containers", "main", "mounts.json"), true))
}

// followed: what changes in an object changes in the pod.
func (c *collector) followed() {
	c.say("The configMap changes while the pod is there:")
	c.kubectl("patch", "configmap/settings", "--type=merge", "-p", `{"data":{"speed":"fast"}}`)
	c.check("the volume follows", "pod/collector", reads(filepath.Join(c.volume("configmap", "settings"), "speed"), "fast"))
	c.check("so does the projected one", "pod/collector", reads(filepath.Join(c.volume("projected", "identity"), "speed"), "fast"))
}

// takeAway: all of it goes with the pod and its claims.
func (s *scenario) takeAway(c *collector) {
	s.kubectl("delete", "pod/collector", "pvc/prepared", "pvc/directory", "pvc/image", "pvc/device", "--wait=false")
	s.check("the pod is gone", "pod/collector", s.isGone("collector", &corev1.Pod{}))
	s.check("nothing of it is mounted, and its directory is gone", "pod", all(nothingMountedBelow(c.dir), s.exists(c.dir, false)))
	s.check("its claims are gone, the ephemeral volume's too", "pvc", s.allGone())
	for _, claim := range slices.Sorted(maps.Keys(c.claims)) {
		volume := c.claims[claim]
		s.check("the volume of claim "+claim+" is gone", "pv/"+volume, s.isGone(volume, &corev1.PersistentVolume{}))
	}
	s.check("no loop device is left", "pv", s.nothingAttached())
	s.kubectl("delete", "storagebackend/sized", "configmap/settings", "secret/password", "serviceaccount/robot", "--wait=false")
	s.check("the StorageBackend can be deleted", "storagebackend/sized", s.isGone("sized", &stowagev1alpha1.StorageBackend{}))
	s.kubectl("delete", "pv/prepared", "--wait=false")
	s.check("the volume made by hand can be deleted", "pv/prepared", s.isGone("prepared", &corev1.PersistentVolume{}))
}

func (s *scenario) inDisks(name string) string { return filepath.Join(s.cluster.Folder.Disks(), name) }

// volumesReady holds if a pod's condition says that so many volumes are there.
func (s *scenario) volumesReady(name string, count int) condition {
	return func() error {
		pod := &corev1.Pod{}
		if err := s.get(name, pod); err != nil {
			return err
		}
		for _, found := range pod.Status.Conditions {
			if found.Type == stowagev1alpha1.VolumesReadyCondition && found.Status == corev1.ConditionTrue {
				return hasParts(found.Message, []string{fmt.Sprintf("(%d)", count)})
			}
		}
		return fmt.Errorf("its conditions: %s", podConditions(pod))
	}
}

// reads holds if a file has this content.
func reads(path, want string) condition {
	return func() error {
		content, err := os.ReadFile(path)
		if err == nil && string(content) != want {
			err = fmt.Errorf("%s has %q, not %q", path, content, want)
		}
		return err
	}
}

// inMemory holds if these directories are mounts of file systems in memory.
func inMemory(dirs ...string) condition {
	return func() error {
		table, err := mount.Kernel{}.Table()
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			if point, mounted := table.At(dir); !mounted || point.FSType != "tmpfs" {
				return fmt.Errorf("at %s there is %+v", dir, point)
			}
		}
		return nil
	}
}

// all holds if all of these do.
func all(conditions ...condition) condition {
	return func() error {
		for _, holds := range conditions {
			if err := holds(); err != nil {
				return err
			}
		}
		return nil
	}
}
