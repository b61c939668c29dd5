package integration_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// clearing is how long removing all that a spec made may take. It proves nothing, and a
// busy machine takes its time over hundreds of volumes.
const clearing = 2 * time.Minute

// removeEverything removes what specs made, while the manager still runs: what
// holds an object is let go in the order in which a person would.
func removeEverything(ctx SpecContext) {
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &storagev1.VolumeAttachmentList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{},
		&stowagev1alpha1.StorageBackendList{}, &corev1.NodeList{}, &storagev1.StorageClassList{},
	} {
		Eventually(func(g Gomega) { removeAll(ctx, g, list) }).WithContext(ctx).WithTimeout(3 * clearing).Should(Succeed())
	}
}

func removeAll(ctx context.Context, g Gomega, list client.ObjectList) {
	g.Expect(users.List(ctx, list)).To(Succeed())
	items, err := meta.ExtractList(list)
	g.Expect(err).NotTo(HaveOccurred())
	for _, item := range items {
		err := users.Delete(ctx, item.(client.Object), client.GracePeriodSeconds(0))
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	}
	g.Expect(items).To(BeEmpty())
}

func name(kind string, number int) string { return fmt.Sprintf("%s-%d", kind, number) }
