package integration_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/nfs"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("With a share of an NFS server", Ordered, func() {
	var folder string

	BeforeEach(func() {
		folder = GinkgoT().TempDir()
		server, err := nfstest.Serve(folder)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Close)
		startManager(nfs.NewKind("this-cluster", ""))
		DeferCleanup(removeEverything)
		create(GinkgoT().Context(), share(server))
	})

	It("a claim gets a directory, which goes with it", func(ctx SpecContext) {
		claim := Claim(InClass("share"), AskingModes(corev1.ReadWriteMany))
		create(ctx, claim)
		eventuallyBound(ctx, claim)
		directory := filepath.Join(folder, "default", "data-"+string(claim.UID))
		Expect(directory).To(BeADirectory())
		Expect(os.WriteFile(filepath.Join(directory, "file"), nil, 0o600)).To(Succeed())

		Expect(users.Delete(ctx, claim)).To(Succeed())

		eventuallyEmpty(ctx, &corev1.PersistentVolumeList{})
		Expect(directory).NotTo(BeADirectory())
	})

	It("a claim that asks for more than a directory can be gets an event", func(ctx SpecContext) {
		claim := Claim(InClass("share"), AskingBlock())
		create(ctx, claim)

		eventuallyWaits(ctx, claim, "ProvisioningFailed")

		Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		Expect(claim.Status.Conditions).To(ContainElement(HaveField("Message", ContainSubstring("volumeMode Block is not supported here"))))
	})
})

var _ = Describe("With a directory that an administrator exports", Ordered, func() {
	It("a volume of policy Recycle is emptied, and goes from claim to claim", func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		server, err := nfstest.Serve(folder)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Close)
		startManager(nfs.NewKind("this-cluster", ""))
		DeferCleanup(removeEverything)
		create(ctx, scratch(server))
		for _, name := range []string{"first", "second"} {
			claim := Claim(ClaimNamed(name), InClass(""))
			create(ctx, claim)
			eventuallyBound(ctx, claim)
			Expect(filepath.Glob(filepath.Join(folder, "*"))).To(BeEmpty())
			Expect(os.WriteFile(filepath.Join(folder, name), nil, 0o600)).To(Succeed())

			Expect(users.Delete(ctx, claim)).To(Succeed())

			eventuallyAvailable(ctx, scratch(server))
		}
		Expect(os.ReadDir(folder)).To(BeEmpty())
	})
})

// scratch is a volume that is the whole share of a server in this process.
func scratch(server *nfstest.Server) *corev1.PersistentVolume {
	pv := Volume("scratch", Reclaimed(corev1.PersistentVolumeReclaimRecycle))
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
		NFS: &corev1.NFSVolumeSource{Server: nfstest.Host, Path: nfstest.Share},
	}
	for _, option := range nfstest.Ports(server.Port()) {
		pv.Spec.MountOptions = append(pv.Spec.MountOptions, string(option))
	}
	return pv
}

// share is the backend of a server in this process.
func share(server *nfstest.Server) *stowagev1alpha1.StorageBackend {
	return LocalBackend("share", func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local = nil
		object.Spec.NFS = &stowagev1alpha1.NFSBackend{
			Server: nfstest.Host, Path: nfstest.Share, MountOptions: nfstest.Ports(server.Port()),
			DirectoryTemplate: "{{namespace}}/{{name}}-{{uid}}",
			Access:            stowagev1alpha1.NFSAccess{UID: int64(os.Getuid()), GID: int64(os.Getgid()), Mode: "0770"},
		}
	})
}
