package nodemanager_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	nfsdriver "github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/inlinenfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
)

// Of the share of a world's backend.
const (
	shareServer = "192.0.2.7"
	sharePath   = "/srv/share"
)

func (w *world) servers() mounttest.Servers {
	return mounttest.Servers{Root: filepath.Join(filepath.Dir(w.root), "servers")}
}

// onShare is a path on the share, as its server has it.
func (w *world) onShare(parts ...string) string {
	return filepath.Join(append([]string{w.servers().PathOf(shareServer, sharePath)}, parts...)...)
}

// inline is the type of inline volumes, on the world's servers.
func (w *world) inline() volumes.Plugin {
	GinkgoHelper()
	servers := nfsdriver.NewShares(w.servers())
	shares, err := nfs.New(servers, filepath.Join(w.root, "nfs"))
	Expect(err).NotTo(HaveOccurred())
	claimed, err := nfsdriver.New(servers, filepath.Join(w.root, "staged", stowagev1alpha1.NFSDriver))
	Expect(err).NotTo(HaveOccurred())
	driver, err := inlinenfs.NewDriver(inlinenfs.Options{
		Claimed: claimed, Shares: shares, Folders: w.servers(), Folder: filepath.Join(w.root, "inline"),
	})
	Expect(err).NotTo(HaveOccurred())
	return inlinenfs.New(driver)
}

// backend creates a backend with or without inline volumes.
func (w *world) backend(ctx context.Context, allowInline bool) *stowagev1alpha1.StorageBackend {
	GinkgoHelper()
	Expect(os.MkdirAll(w.onShare(), 0o755)).To(Succeed())
	backend := &stowagev1alpha1.StorageBackend{}
	backend.Name = "share-of-" + w.namespace
	backend.Spec.NFS = &stowagev1alpha1.NFSBackend{Server: shareServer, Path: sharePath, AllowInline: allowInline}
	Expect(admin.Create(ctx, backend)).To(Succeed())
	return backend
}

// allow sets whether a backend allows inline volumes.
func allow(ctx context.Context, backend *stowagev1alpha1.StorageBackend, allowInline bool) {
	GinkgoHelper()
	before := backend.DeepCopy()
	backend.Spec.NFS.AllowInline = allowInline
	Expect(admin.Patch(ctx, backend, client.MergeFrom(before))).To(Succeed())
}

// naming is an inline volume of a backend.
func naming(backend string, more ...string) corev1.Volume {
	attributes := map[string]string{stowagev1alpha1.BackendAttribute: backend}
	for _, attribute := range more {
		attributes[attribute] = "x"
	}
	return corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{
		CSI: &corev1.CSIVolumeSource{Driver: stowagev1alpha1.NFSDriver, VolumeAttributes: attributes},
	}}
}

// grantInline grants nodes what an installation grants them for inline volumes.
func grantInline(ctx context.Context) {
	GinkgoHelper()
	grant(ctx, "inline_volumes.yaml")
}

// grant creates what a file of config/rbac/pod-source has.
func grant(ctx context.Context, name string) {
	GinkgoHelper()
	file, err := os.Open("../../config/rbac/pod-source/" + name)
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(client.IgnoreAlreadyExists(admin.Create(ctx, object))).To(Succeed())
	}
}

var _ = Describe("A pod's own volume on a backend's share", func() {
	var w *world
	var stop func() error
	BeforeEach(func(ctx SpecContext) {
		grantInline(ctx)
		w = newWorld(ctx)
		w.register(ctx)
		stop = w.startAgent()
	})

	run := func(ctx context.Context, name string, volume corev1.Volume) *corev1.Pod {
		GinkgoHelper()
		pod := w.pod(name, volume)
		Expect(admin.Create(ctx, pod)).To(Succeed())
		return pod
	}
	fileOf := func(pod *corev1.Pod) string {
		plugin := inlinenfs.Plugin{}
		return filepath.Join(plugin.Path(filepath.Join(w.root, "pods", string(pod.UID), "volumes", volumes.DirName(plugin.Name()), "scratch")), "file")
	}
	folderOf := func(pod *corev1.Pod) string { return w.onShare(".stowage-inline", string(pod.UID)+"-scratch") }

	//proves:inline/folder
	It("is a folder that is made for the pod, and removed with it", func(ctx SpecContext) {
		pod := run(ctx, "web", naming(w.backend(ctx, true).Name))
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(os.WriteFile(fileOf(pod), []byte("hello"), 0o600)).To(Succeed())
		Expect(os.ReadFile(filepath.Join(folderOf(pod), "file"))).To(BeEquivalentTo("hello"))

		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(folderOf(pod)).NotTo(BeAnExistingFile())
		Expect(w.mounts()).To(BeEmpty())
		Expect(w.podDirs()).To(BeEmpty())
	})

	//proves:inline/record
	It("is refused unless the backend allows it, and mounted as soon as it does", func(ctx SpecContext) {
		backend := w.backend(ctx, false)
		pod := run(ctx, "web", naming(backend.Name))
		Eventually(volumesReady(ctx, pod)).Should(And(HavePrefix("False FailedMount"), ContainSubstring("set nfs.allowInline")))
		Expect(w.onShare(".stowage-inline")).NotTo(BeADirectory())

		allow(ctx, backend, true)
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
	})

	//proves:inline/record inline/crash
	It("stays with its pod across restarts when the backend is gone, and new pods wait for the backend", func(ctx SpecContext) {
		backend := w.backend(ctx, true)
		old := run(ctx, "old", naming(backend.Name))
		Eventually(volumesReady(ctx, old)).Should(HavePrefix("True"))
		Expect(os.WriteFile(fileOf(old), []byte("hello"), 0o600)).To(Succeed())

		allow(ctx, backend, false)
		Expect(admin.Delete(ctx, backend)).To(Succeed())
		Expect(stop()).To(Succeed())
		stop = w.startAgent()

		young := run(ctx, "young", naming(backend.Name))
		Eventually(volumesReady(ctx, young)).Should(ContainSubstring("waiting for StorageBackend " + backend.Name))
		Expect(volumesReady(ctx, old)()).To(HavePrefix("True"))
		Expect(os.ReadFile(fileOf(old))).To(BeEquivalentTo("hello"))
		Expect(admin.Delete(ctx, old)).To(Succeed())
		Eventually(isGone(ctx, old)).Should(BeTrue())
		Expect(folderOf(old)).NotTo(BeAnExistingFile())
	})

	//proves:inline/backend
	It("takes nothing but the backend's name from the pod", func(ctx SpecContext) {
		pod := run(ctx, "web", naming(w.backend(ctx, true).Name, stowagev1alpha1.ServerAttribute))
		Eventually(volumesReady(ctx, pod)).Should(And(HavePrefix("False NotSupported"), ContainSubstring(`attribute "server"`)))
		Expect(w.onShare(".stowage-inline")).NotTo(BeADirectory())
	})
})
