package integration_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce"
	"github.com/stowage-dev/stowage/internal/gcemock"
	"github.com/stowage-dev/stowage/internal/volume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	cloudProject   = "demo"
	zoneA, zoneB   = "europe-west3-a", "europe-west3-b"
	nodeA, nodeB   = "node-a", "node-b"
	replicatedName = "replicated"
)

// noKeys are those of a cloud that asks for none.
type noKeys struct{}

func (noKeys) Key(context.Context, string) (key []byte, version string, err error) {
	return nil, "", errors.New("there are no keys")
}

var _ = Describe("With the whole manager running, and a cloud of two zones with a node in each", func() {
	var cloud *gcemock.Server

	BeforeEach(func(ctx SpecContext) {
		var endpoint string
		cloud, endpoint = startCloud(0)
		for zone, node := range map[string]string{zoneA: nodeA, zoneB: nodeB} {
			Expect(cloud.EnsureInstance(cloudProject, zone, node, "e2-standard-2")).To(Succeed())
			create(ctx, nodeInZone(node, zone))
		}
		manager{scope: reconciler.ClusterScope, kinds: []backend.Kind{gce.NewKind("this-cluster", noKeys{})}}.start()
		DeferCleanup(removeEverything)
		create(ctx, cloudBackend(endpoint), &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: replicatedName}, Provisioner: stowagev1alpha1.GCEDriver,
			Parameters: map[string]string{"backend": "cloud", "replication-type": "regional-pd"},
		})
	})

	It("a disk of both zones follows its pod out of one that fails, though nothing of that can be read", func(ctx SpecContext) {
		claim := Claim(ClaimNamed("data"), InClass(replicatedName))
		create(ctx, claim)
		Eventually(boundClaims).WithArguments(ctx).WithTimeout(clearing).Should(Equal(1))
		Expect(users.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		pv := &corev1.PersistentVolume{}
		Expect(users.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)).To(Succeed())
		before := Pod("before", nodeA, "data")
		create(ctx, before)
		eventuallyIsAttached(ctx, pv, nodeA)
		setInUse(ctx, nodeA, pv)

		cloud.SetSilent(zoneA)
		DeferCleanup(func(ctx SpecContext) {
			cloud.SetDown(zoneA, false)
			setInUse(ctx, nodeA)
		})
		setLost(ctx, nodeA)
		Expect(users.Delete(ctx, before, client.GracePeriodSeconds(0))).To(Succeed())
		create(ctx, Pod("after", nodeB, "data"))

		eventuallyIsAttached(ctx, pv, nodeB)
	})
})

// startCloud serves a cloud of two zones until the spec ends. Its operations take some time.
func startCloud(latency time.Duration) (cloud *gcemock.Server, endpoint string) {
	GinkgoHelper()
	cloud, err := gcemock.New(context.Background(), gcemock.Options{
		Folder: GinkgoT().TempDir(), Projects: []string{cloudProject}, Zones: []string{zoneA, zoneB}, Latency: latency,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cloud.Close)
	server := httptest.NewServer(cloud)
	DeferCleanup(server.Close)
	return cloud, server.URL + "/compute/v1/"
}

func cloudBackend(endpoint string) *stowagev1alpha1.StorageBackend {
	return LocalBackend("cloud", func(object *stowagev1alpha1.StorageBackend) {
		object.Spec.Local, object.Spec.StorageClass = nil, nil
		object.Spec.GCE = &stowagev1alpha1.GCEBackend{
			Project: cloudProject, Zones: []string{zoneA, zoneB}, Endpoint: endpoint,
			ClassParameters: []stowagev1alpha1.GCEClassParameter{"replication-type"},
		}
	})
}

// nodeInZone is a Ready node whose machine is in a zone.
func nodeInZone(name, zone string) *corev1.Node {
	node := Node(name)
	node.Annotations = map[string]string{attach.ManagedAnnotation: "true"}
	node.Labels[corev1.LabelTopologyZone] = zone
	node.Spec.ProviderID = "gce://" + cloudProject + "/" + zone + "/" + name
	return node
}

// setLost has a node not Ready for longer than forceDetachAfter. What it used stays in its status.
func setLost(ctx context.Context, name string) {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(users.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	before := node.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
	}}
	Expect(users.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
}

// eventuallyIsAttached waits until a volume is attached to a node, as its VolumeAttachment says.
func eventuallyIsAttached(ctx context.Context, pv *corev1.PersistentVolume, node string) {
	GinkgoHelper()
	attachment := &storagev1.VolumeAttachment{}
	attachment.Name = volume.AttachmentName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle, node)
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, client.ObjectKeyFromObject(attachment), attachment)).To(Succeed())
		g.Expect(attachment.Status.Attached).To(BeTrue(), "%+v", attachment.Status)
	}).WithContext(ctx).WithTimeout(clearing).Should(Succeed())
}
