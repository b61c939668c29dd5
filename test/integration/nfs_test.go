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
	. "github.com/stowage-dev/stowage/test/fixture"
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

	It("a claim that asks for more than a directory can be is told", func(ctx SpecContext) {
		claim := Claim(InClass("share"), AskingBlock())
		create(ctx, claim)

		eventuallyWaits(ctx, claim, "ProvisioningFailed")

		Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		Expect(claim.Status.Conditions).To(ContainElement(HaveField("Message", HavePrefix("volumeMode Block is not supported here"))))
	})
})

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
