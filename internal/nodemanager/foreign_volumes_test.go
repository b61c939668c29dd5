package nodemanager_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/socket/sockettest"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/volume"
)

var _ = Describe("A volume of another project's driver", func() {
	var (
		w     *world
		other *program
	)

	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		w.register(ctx)
		other = w.newProgram(sockettest.Stage)
		other.Info = &csispec.NodeGetInfoResponse{NodeId: "id-of-node", MaxVolumesPerNode: 5, AccessibleTopology: &csispec.Topology{
			Segments: map[string]string{"example.com/zone": "a"},
		}}
	})

	podWithClaim := func(ctx context.Context, name string, change func(*corev1.PersistentVolume)) (*corev1.Pod, *corev1.PersistentVolumeClaim) {
		GinkgoHelper()
		claim := w.claim(ctx, name)
		w.bind(ctx, claim, other.source("vol-"+name), func(pv *corev1.PersistentVolume) {
			if change != nil {
				change(pv)
			}
		})
		pod := w.pod(name, fromClaim(name))
		Expect(admin.Create(ctx, pod)).To(Succeed())
		return pod, claim
	}

	//proves:csi/foreign
	It("waits for its driver, and is mounted with its secrets once that registers", func(ctx SpecContext) {
		other.object(ctx, nil)
		Expect(admin.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "stage"}, Data: map[string][]byte{"password": []byte("x")},
		})).To(Succeed())
		w.startAgent()
		pod, claim := podWithClaim(ctx, "data", func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: w.namespace, Name: "stage"}
		})
		Eventually(volumesReady(ctx, pod)).Should(ContainSubstring("driver name %s not found in the list of registered CSI drivers", other.name))

		other.start()

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(os.WriteFile(filepath.Join(w.mountOf(pod, claim), "written"), []byte("by the pod"), 0o600)).To(Succeed())
		Expect(os.ReadFile(filepath.Join(other.Data, "vol-data", "written"))).To(BeEquivalentTo("by the pod"))
		Expect(sockettest.Last[*csispec.NodeStageVolumeRequest](other.Driver).GetSecrets()).To(Equal(map[string]string{"password": "x"}))
		Expect(w.driversOf(ctx)()).To(ContainElement(And(
			HaveField("Name", other.name), HaveField("NodeID", "id-of-node"), HaveField("TopologyKeys", ConsistOf("example.com/zone")),
			HaveField("Allocatable.Count", HaveValue(BeEquivalentTo(5))))))
		node := &corev1.Node{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: w.node}, node)).To(Succeed())
		Expect(node.Labels).To(HaveKeyWithValue("example.com/zone", "a"))
	})

	//proves:csi/foreign
	It("is laid out and recorded as by a kubelet", func(ctx SpecContext) {
		other.object(ctx, nil)
		w.startAgent()
		other.start()
		pod, claim := podWithClaim(ctx, "data", nil)
		device, block := podWithClaim(ctx, "device", func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) })
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Eventually(volumesReady(ctx, device)).Should(HavePrefix("True"))
		plugins := filepath.Join(w.root, "plugins", "kubernetes.io", "csi")
		of := func(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }
		recordOf := func(handle, name string) map[string]string {
			return map[string]string{
				"driverName": other.name, "volumeHandle": handle, "specVolID": name, "volumeLifecycleMode": "Persistent", "nodeName": w.node,
				"attachmentID": volume.AttachmentName(other.name, handle, w.node),
			}
		}

		inPod := filepath.Join(w.root, "pods", string(pod.UID), "volumes", "kubernetes.io~csi", of(claim))
		Expect(recordAt(filepath.Join(inPod, "vol_data.json"))).To(Equal(recordOf("vol-data", of(claim))))
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte("vol-data")))
		Expect(recordAt(filepath.Join(plugins, other.name, sum, "vol_data.json"))).To(HaveKeyWithValue("volumeHandle", "vol-data"))
		Expect(w.mounts()).To(ContainElements(HaveField("Path", filepath.Join(inPod, "mount")), HaveField("Path", filepath.Join(plugins, other.name, sum, "globalmount"))))

		link := filepath.Join(w.root, "pods", string(device.UID), "volumeDevices", "kubernetes.io~csi", of(block))
		Expect(os.Readlink(link)).To(Equal(filepath.Join(plugins, "volumeDevices", "publish", of(block), string(device.UID))))
		Expect(recordAt(filepath.Join(plugins, "volumeDevices", of(block), "data", "vol_data.json"))).To(And(
			HaveKeyWithValue("volumeHandle", "vol-device"), HaveKeyWithValue("driverName", other.name), HaveKeyWithValue("specVolID", of(block))))
	})

	//proves:csi/foreign-away
	It("stays as it is while its driver is away, and is unmounted when that is back", func(ctx SpecContext) {
		other.object(ctx, nil)
		stopAgent := w.startAgent()
		other.start()
		pod, claim := podWithClaim(ctx, "data", nil)
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))

		other.stop()
		Eventually(w.driversOf(ctx)).ShouldNot(ContainElement(HaveField("Name", other.name)))
		Expect(stopAgent()).To(Succeed())
		w.startAgent()
		Consistently(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(w.mountOf(pod, claim)).To(BeADirectory())

		Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(30))).To(Succeed())
		Eventually(volumesReady(ctx, pod)).Should(And(ContainSubstring("FailedUnmount"), ContainSubstring(other.name), ContainSubstring("node plug-in")))
		Eventually(eventsOf(ctx, pod, "FailedUnmount")).Should(ContainElement(ContainSubstring(other.name)))
		other.start()
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
		Expect(filepath.Glob(filepath.Join(w.root, "plugins", "kubernetes.io", "csi", other.name, "*"))).To(BeEmpty())
	})

	//proves:csi/foreign
	It("is staged once for all pods of the node, and unstaged after the last", func(ctx SpecContext) {
		other.object(ctx, nil)
		w.startAgent()
		other.start()
		first, _ := podWithClaim(ctx, "data", nil)
		second := w.pod("second", fromClaim("data"))
		Expect(admin.Create(ctx, second)).To(Succeed())
		Eventually(volumesReady(ctx, first)).Should(HavePrefix("True"))
		Eventually(volumesReady(ctx, second)).Should(HavePrefix("True"))
		other.Calls()

		Expect(admin.Delete(ctx, first, client.GracePeriodSeconds(30))).To(Succeed())
		Eventually(isGone(ctx, first)).Should(BeTrue())
		Expect(other.Calls()).To(Equal([]string{"unpublish"}))
		Expect(volumesReady(ctx, second)()).To(HavePrefix("True"))

		Expect(admin.Delete(ctx, second, client.GracePeriodSeconds(30))).To(Succeed())
		Eventually(isGone(ctx, second)).Should(BeTrue())
		Expect(other.Calls()).To(Equal([]string{"unpublish", "unstage"}))
	})

	//proves:csi/foreign-attached
	It("waits for its attachment, and its driver gets what that says", func(ctx SpecContext) {
		other.object(ctx, func(spec *storagev1.CSIDriverSpec) { spec.AttachRequired = new(true) })
		w.startAgent()
		other.start()
		pod, claim := podWithClaim(ctx, "data", nil)
		Eventually(volumesReady(ctx, pod)).Should(ContainSubstring("to be attached"))
		Expect(other.Calls()).NotTo(ContainElement("stage"))

		name := "pvc-" + string(claim.UID)
		attachment := &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: volume.AttachmentName(other.name, "vol-data", w.node)},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: other.name, NodeName: w.node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}},
		}
		Expect(admin.Create(ctx, attachment)).To(Succeed())
		attachment.Status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"path": "/dev/of-driver"}}
		Expect(admin.Status().Update(ctx, attachment)).To(Succeed())
		node := &corev1.Node{}
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, client.ObjectKey{Name: w.node}, node)).To(Succeed())
			node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: volume.UniqueName(other.name, "vol-data")}}
			g.Expect(admin.Status().Update(ctx, node)).To(Succeed())
		}).Should(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Expect(sockettest.Last[*csispec.NodePublishVolumeRequest](other.Driver).GetPublishContext()).To(Equal(map[string]string{"path": "/dev/of-driver"}))
		Expect(admin.Get(ctx, client.ObjectKey{Name: w.node}, node)).To(Succeed())
		Expect(node.Status.VolumesInUse).To(ContainElement(volume.UniqueName(other.name, "vol-data")))
	})

	//proves:csi/foreign-inline
	It("is a pod's own, with what its driver asks for of the pod", func(ctx SpecContext) {
		other.object(ctx, func(spec *storagev1.CSIDriverSpec) {
			spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecycleEphemeral}
			spec.PodInfoOnMount = new(true)
			spec.TokenRequests = []storagev1.TokenRequest{{Audience: "vault.example.com"}}
		})
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "robot"}}
		Expect(admin.Create(ctx, account)).To(Succeed())
		w.startAgent()
		other.start()
		pod := w.pod("web", corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: other.name}}})
		pod.Spec.ServiceAccountName = account.Name
		Expect(admin.Create(ctx, pod)).To(Succeed())

		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))

		context := sockettest.Last[*csispec.NodePublishVolumeRequest](other.Driver).GetVolumeContext()
		Expect(context).To(HaveKeyWithValue("csi.storage.k8s.io/ephemeral", "true"))
		Expect(context).To(HaveKeyWithValue("csi.storage.k8s.io/pod.uid", string(pod.UID)))
		Expect(context).To(HaveKeyWithValue("csi.storage.k8s.io/serviceAccount.tokens", ContainSubstring("vault.example.com")))
		Expect(admin.Delete(ctx, pod, client.GracePeriodSeconds(30))).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.mounts()).To(BeEmpty())
	})

	//proves:csi/foreign-usage
	It("is measured by its driver, at the path that its pod has", func(ctx SpecContext) {
		other.Can(sockettest.Stage, sockettest.Stats)
		other.Usage = []*csispec.VolumeUsage{{Unit: csispec.VolumeUsage_BYTES, Total: 10, Available: 7, Used: 3}}
		other.object(ctx, nil)
		w.startAgent()
		other.start()
		pod, claim := podWithClaim(ctx, "data", nil)
		device, _ := podWithClaim(ctx, "device", func(pv *corev1.PersistentVolume) {
			pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		})
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))
		Eventually(volumesReady(ctx, device)).Should(HavePrefix("True"))

		used := func() map[string]float64 {
			return nodetest.MetricsOf(GinkgoTB(), w.metrics, "kubelet_volume_stats_used_bytes")
		}

		Eventually(used).Should(Equal(map[string]float64{w.namespace + " data": 3, w.namespace + " device": 3}))
		Expect(other.Measured()).To(ConsistOf(w.mountOf(pod, claim), ContainSubstring("volumeDevices/publish")))
	})

	//proves:csi/foreign-hangs
	It("holds up no other volume while its driver hangs", func(ctx SpecContext) {
		other.object(ctx, nil)
		w.startAgent()
		other.start()
		Eventually(w.driversOf(ctx)).Should(ContainElement(HaveField("Name", other.name)))
		other.Does(func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		})
		hangs, _ := podWithClaim(ctx, "hangs", nil)
		Eventually(other.Calls).Should(ContainElement("stage"))
		works := w.pod("works", fromClaim("local"))
		w.boundClaim(ctx, "local")
		Expect(admin.Create(ctx, works)).To(Succeed())

		Eventually(volumesReady(ctx, works)).Should(HavePrefix("True"))
		Eventually(volumesReady(ctx, hangs)).Should(ContainSubstring("takes long"))
		other.Does(nil)
		Expect(admin.Delete(ctx, hangs, client.GracePeriodSeconds(30))).To(Succeed())
		Eventually(isGone(ctx, hangs)).Should(BeTrue())
	})
})

// recordAt is what a record has for a kubelet: all but the agent's own keys.
func recordAt(path string) map[string]string {
	GinkgoHelper()
	content, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	record := map[string]string{}
	Expect(json.Unmarshal(content, &record)).To(Succeed())
	maps.DeleteFunc(record, func(key, _ string) bool { return strings.HasPrefix(key, "stowage.dev/") })
	return record
}
