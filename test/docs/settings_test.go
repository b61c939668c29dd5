package docs_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// settings have what the reader of a section of a page has before it, and the names of those
// objects. Pages without one need nothing.
var settings = map[string]func(ctx context.Context, section, folder string) words{
	"docs/kubectl.md":               aStoryOfThePlugIn,
	"docs/attachments.md":           aLostDisk,
	"docs/operate/undelete.md":      deletedData,
	"docs/operate/orphans.md":       anOrphan,
	"docs/operate/lost-nodes.md":    aLostNode,
	"docs/decisions/local-disks.md": aLostNode,
	"docs/operate/full-disks.md":    aFullVolume,
	"docs/operate/nfs-away.md":      aFullVolume,
	"docs/operate/quota.md":         aFullVolume,
	"docs/operate/terminating.md":   somethingTerminating,
	"docs/operate/force-detach.md":  aLostDisk,
	"docs/operate/backup.md":        aLostObject,
	"docs/start/local.md":           aNamespace,
	"docs/start/nfs.md":             aNamespace,
}

// results check what a page's commands led to.
var results = map[string]func(ctx context.Context){
	"docs/operate/undelete.md": func(ctx context.Context) {
		for _, name := range []string{undeleted[theirSections[0]], undeleted[theirSections[1]]} {
			expectBoundWithPolicy(ctx, name, corev1.PersistentVolumeReclaimDelete)
		}
	},
	"docs/operate/backup.md": func(ctx context.Context) {
		expectBoundWithPolicy(ctx, restored, corev1.PersistentVolumeReclaimDelete)
	},
}

// made counts the settings, so that each has names of its own.
var made int

func unique(name string) string {
	made++
	return fmt.Sprintf("%s-%d", name, made)
}

func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		wanted := object.DeepCopyObject().(client.Object)
		Expect(admin.Create(ctx, object)).To(Succeed())
		if node, is := object.(*corev1.Node); is {
			node.Status = wanted.(*corev1.Node).Status
			Expect(admin.Status().Update(ctx, node)).To(Succeed())
		}
	}
}

func aNamespace(ctx context.Context, _, _ string) words {
	GinkgoHelper()
	namespace := &corev1.Namespace{}
	namespace.Name = unique("team")
	create(ctx, namespace)
	return words{"NAMESPACE": namespace.Name}
}

// bound makes a backend, and a claim with a volume of it, in a namespace of its own.
func bound(ctx context.Context, backend *stowagev1alpha1.StorageBackend) (words, *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	names := aNamespace(ctx, "", "")
	claim := Claim(InClass(backend.Name))
	claim.Namespace = names["NAMESPACE"]
	create(ctx, backend, claim)
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
	}).Should(Succeed())
	names["BACKEND"], names["CLASS"], names["CLAIM"], names["VOLUME"] = backend.Name, backend.Name, claim.Name, claim.Spec.VolumeName
	return names, claim
}

// aFullVolume is a bound claim, on a node.
func aFullVolume(ctx context.Context, _, _ string) words {
	GinkgoHelper()
	names, _ := bound(ctx, LocalBackend(unique("disks")))
	names["NODE"] = "node"
	return names
}

// The sections of undelete.md that end with a bound claim, and the volumes that they had.
var (
	theirSections = []string{"Give the data back", "Without the plug-in"}
	undeleted     = map[string]string{}
)

// deletedData is a volume whose claim was deleted. In the section on that, it is deleted, too.
func deletedData(ctx context.Context, section, _ string) words {
	GinkgoHelper()
	backend := LocalBackend(unique("disks"))
	backend.Spec.Deletion.RetainFor.Duration = 2 * soon
	names, claim := bound(ctx, backend)
	Expect(admin.Delete(ctx, claim)).To(Succeed())
	volume := &corev1.PersistentVolume{}
	Eventually(func(g Gomega) {
		g.Expect(admin.Get(ctx, client.ObjectKey{Name: names["VOLUME"]}, volume)).To(Succeed())
		g.Expect(volume.Status.Reason).To(HavePrefix("UndeletableUntil"))
	}).Should(Succeed())
	if strings.Contains(section, "Terminating") {
		Expect(admin.Delete(ctx, volume)).To(Succeed())
	}
	undeleted[section] = names["VOLUME"]
	return names
}

func expectBoundWithPolicy(ctx context.Context, name string, policy corev1.PersistentVolumeReclaimPolicy) {
	GinkgoHelper()
	volume := &corev1.PersistentVolume{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: name}, volume)).To(Succeed())
	Expect(volume.Status.Phase).To(Equal(corev1.VolumeBound))
	Expect(volume.Spec.PersistentVolumeReclaimPolicy).To(Equal(policy))
}

// anOrphan is the id of storage without an object, on a node with a disk.
func anOrphan(ctx context.Context, section, folder string) words {
	GinkgoHelper()
	names := aLostNode(ctx, section, folder)
	names["ORPHAN"] = "pvc-" + string(uuid.NewUUID())
	return names
}

// aLostNode is a node with a disk, and a NodeVolume on it.
func aLostNode(ctx context.Context, _, _ string) words {
	GinkgoHelper()
	backend, node := LocalBackend(unique("disks")), Node(unique("node"))
	create(ctx, backend, node)
	names := words{"BACKEND": backend.Name, "NODE": node.Name, "NODEVOLUME": "pvc-" + string(uuid.NewUUID())}
	disks := &stowagev1alpha1.NodeDiskList{}
	Eventually(func(g Gomega) {
		g.Expect(admin.List(ctx, disks, client.MatchingFields{"spec.nodeName": node.Name})).To(Succeed())
		g.Expect(disks.Items).NotTo(BeEmpty())
	}).Should(Succeed())
	disk := disks.Items[0]
	disk.Status.Identity = &stowagev1alpha1.DiskIdentity{ID: "4711"}
	Expect(admin.Status().Update(ctx, &disk)).To(Succeed())
	names["DISK"], names["NAME"] = disk.Name, disk.Name
	volume := &stowagev1alpha1.NodeVolume{Spec: stowagev1alpha1.NodeVolumeSpec{
		NodeName: node.Name, Backend: backend.Name, Path: disk.Spec.Path, Capacity: Claim().Spec.Resources.Requests[corev1.ResourceStorage],
		ClaimRef: stowagev1alpha1.ClaimReference{Namespace: Namespace, Name: "data", UID: "uid"},
	}}
	volume.Name, volume.Finalizers = names["NODEVOLUME"], []string{stowagev1alpha1.NodeVolumeFinalizer}
	create(ctx, volume)
	return names
}

// somethingTerminating is a claim that was deleted and that a pod uses.
func somethingTerminating(ctx context.Context, _, _ string) words {
	GinkgoHelper()
	names, claim := bound(ctx, LocalBackend(unique("disks")))
	pod := Pod("reader", "node", claim.Name)
	pod.Namespace = claim.Namespace
	create(ctx, pod)
	Expect(admin.Delete(ctx, claim)).To(Succeed())
	names["POD"] = pod.Name
	return names
}

// aLostDisk is a disk that is attached to a node, and in use by a pod there.
func aLostDisk(ctx context.Context, section, _ string) words {
	GinkgoHelper()
	backend := LocalBackend(unique("cloud"))
	backend.Spec.Local, backend.Spec.GCE = nil, &stowagev1alpha1.GCEBackend{Project: "project", Zones: []string{"zone"}}
	names, claim := bound(ctx, backend)
	node := Node(unique("node"))
	node.Spec.ProviderID = "gce://project/zone/" + node.Name
	node.Annotations = map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
	pod := Pod("writer", node.Name, claim.Name)
	pod.Namespace = claim.Namespace
	if section == "4. Afterwards" {
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
	}
	create(ctx, node, pod)
	Eventually(func(g Gomega) {
		attachments := &storagev1.VolumeAttachmentList{}
		g.Expect(admin.List(ctx, attachments)).To(Succeed())
		for _, each := range attachments.Items {
			if each.Spec.NodeName == node.Name {
				names["ATTACHMENT"] = each.Name
			}
		}
		g.Expect(names).To(HaveKey("ATTACHMENT"))
	}).Should(Succeed())
	names["NODE"], names["POD"], names["NAME"], names["PV"] = node.Name, pod.Name, names["ATTACHMENT"], names["VOLUME"]
	return names
}

// restored is the volume that backup.md restores.
var restored string

// aLostObject is a claim and a volume that were deleted by mistake after they were saved. The storage
// is there: the volume had the policy Retain.
func aLostObject(ctx context.Context, _, folder string) words {
	GinkgoHelper()
	names, _ := bound(ctx, LocalBackend(unique("disks")))
	mustType(ctx, folder, "kubectl get storagebackends,storageclasses,pv -o json >cluster.json; kubectl get pvc -A -o json >claims.json")
	restored = names["VOLUME"]
	mustType(ctx, folder, names.in(`kubectl patch pv VOLUME --type=merge -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'
kubectl delete pvc CLAIM -n NAMESPACE
kubectl wait pv/VOLUME --for=jsonpath='{.status.phase}'=Released
kubectl delete pv VOLUME`))
	return names
}

// aStoryOfThePlugIn is the writer, whose claim is bound, the greedy pod, whose claim waits, and a
// volume whose claim was deleted.
func aStoryOfThePlugIn(ctx context.Context, section, folder string) words {
	GinkgoHelper()
	const volume = "pvc-516fb004-004f-4a1d-84b3-0f155468f3d2"
	if section != "explain" {
		return words{volume: deletedData(ctx, section, folder)["VOLUME"]}
	}
	backend, node := LocalBackend(unique("disks")), Node(unique("node"))
	create(ctx, backend, node, Claim(ClaimNamed("story"), InClass(backend.Name)), Pod("writer", node.Name, "story"),
		Claim(ClaimNamed("huge"), InClass("missing")), Pod("greedy", "", "huge"))
	return words{}
}
