package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A volume of policy Recycle on a node", func() {
	It("is emptied by the node's agent when its claim is gone, and goes to the next one", func() {
		w, agent, pv := recyclingOnNode()
		w.delete(Claim())
		agent.settle()

		expectPhase(w, pv, corev1.VolumeAvailable)
		Expect(pv.Spec.ClaimRef).To(BeNil())
		Expect(agent.files).To(BeEmpty())
		Expect(w.all(&stowagev1alpha1.NodeRecyclingList{})).To(BeEmpty())
		Expect(tellingOf(w.told(), "VolumeRecycled")).To(HaveLen(1))

		next := Claim(ClaimNamed("next"), InClass(""))
		w.create(next)
		w.settle()
		expectBound(w, next, pv)
	})

	It("is emptied where a local source names it", func() {
		w, agent, pv := recyclingOnNode(func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: scratch}}
		})
		w.delete(Claim())
		agent.settle()
		expectPhase(w, pv, corev1.VolumeAvailable)
		Expect(agent.files).To(BeEmpty())
	})

	It("is emptied beside volumes of other directories and nodes", func() {
		w, agent, _ := recyclingOnNode()
		w.create(Volume("sibling", inDirectory(scratch+"-2"), OnNode("n1")), Volume("elsewhere", inDirectory(scratch), OnNode("n2")))
		w.create(Volume("served", onServer("nfs.example.com", scratch)))
		w.delete(Claim())
		agent.settle()
		Expect(agent.files).To(BeEmpty())
	})

	DescribeTable("keeps its data",
		func(keep func(*world, *corev1.PersistentVolume)) {
			w, agent, pv := recyclingOnNode()
			keep(w, pv)
			w.delete(Claim())
			agent.settle()
			Expect(agent.files).To(HaveKey(scratch))
			w.get(pv)
			Expect(pv.Spec.ClaimRef).NotTo(BeNil())
		},
		Entry("when its policy was changed", func(w *world, pv *corev1.PersistentVolume) { update(w, pv, retain) }),
		Entry("when another volume stands for the same directory", func(w *world, _ *corev1.PersistentVolume) {
			w.create(Volume("twin", inDirectory(scratch+"/"), OnNode("n1")))
		}),
		Entry("when another volume is in it, on whichever node", func(w *world, _ *corev1.PersistentVolume) {
			w.create(Volume("inner", inDirectory(scratch+"/inner")))
		}),
		Entry("when it is in the folder of a StorageBackend", func(w *world, _ *corev1.PersistentVolume) {
			w.create(LocalBackend("around", func(object *stowagev1alpha1.StorageBackend) { object.Spec.Local.Path = "/exports" }))
		}),
		Entry("when a volume of a StorageBackend is in it", func(w *world, _ *corev1.PersistentVolume) {
			w.create(Volume("made", OnNode("n1"), func(pv *corev1.PersistentVolume) {
				pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: stowagev1alpha1.LocalDriver, VolumeHandle: "made",
					VolumeAttributes: map[string]string{stowagev1alpha1.PathAttribute: scratch + "/made"},
				}}
			}))
		}),
	)

	DescribeTable("is left to a person, who is told what to do,",
		func(change func(*world, *corev1.PersistentVolume), message string) {
			w, agent, pv := recyclingOnNode(func(pv *corev1.PersistentVolume) { change(nil, pv) })
			change(w, pv)
			w.delete(Claim())
			agent.settle()
			expectPhase(w, pv, corev1.VolumeFailed)
			Expect(pv.Status.Message).To(And(ContainSubstring(message), ContainSubstring("remove its data by hand, then take spec.claimRef off")))
			Expect(tellingOf(w.told(), "VolumeFailedRecycle")).To(HaveLen(1))
			Expect(agent.files).To(HaveKey(scratch))
			Expect(w.all(&stowagev1alpha1.NodeRecyclingList{})).To(BeEmpty())
		},
		Entry("when it isn't tied to a node", made(func(pv *corev1.PersistentVolume) { pv.Spec.NodeAffinity = nil }), "doesn't tie the volume to one node"),
		Entry("when it is tied to a zone", made(func(pv *corev1.PersistentVolume) {
			pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key = corev1.LabelTopologyZone
		}), "doesn't tie the volume to one node"),
		Entry("when several nodes are what it is tied to", func(w *world, _ *corev1.PersistentVolume) {
			if w != nil {
				node := Node("n2")
				node.Labels = Node("n1").Labels
				w.create(node)
			}
		}, "2 nodes have the label"),
		Entry("when it is a socket", made(func(pv *corev1.PersistentVolume) { pv.Spec.HostPath.Type = ptr.To(corev1.HostPathSocket) }), "isn't a directory"),
		Entry("when its path can't be named", made(func(pv *corev1.PersistentVolume) { pv.Spec.HostPath.Path = "/a,b" }), "can't be asked"),
	)

	It("is left to a person when the node's agent refuses", func() {
		w, agent, pv := recyclingOnNode()
		agent.problem = stowagev1alpha1.ReasonNotSupported
		w.delete(Claim())
		agent.settle()
		expectPhase(w, pv, corev1.VolumeFailed)
		Expect(pv.Status.Message).To(ContainSubstring("the agent of node n1 doesn't empty it: as told by the agent"))
		Expect(w.all(&stowagev1alpha1.NodeRecyclingList{})).To(BeEmpty())
	})

	It("waits while the directory is in use, and tells once", func() {
		w, agent, pv := recyclingOnNode()
		agent.problem = stowagev1alpha1.ReasonInUse
		w.delete(Claim())
		agent.settle()
		expectPhase(w, pv, corev1.VolumeReleased)
		Expect(tellingOf(w.told(), "VolumeRecycle")).To(ContainElement(ContainSubstring("on node n1: as told by the agent")))

		agent.problem = ""
		agent.settle()
		expectPhase(w, pv, corev1.VolumeAvailable)
	})

	It("waits for an agent that is away, and tells once", func() {
		w, agent, pv := recyclingOnNode()
		w.delete(Claim())
		w.settle()
		w.settle()
		Expect(tellingOf(w.told(), "VolumeRecycle")).To(ConsistOf(ContainSubstring("node agent of n1 is asked")))
		agent.settle()
		expectPhase(w, pv, corev1.VolumeAvailable)
	})

	It("waits for a node that is gone, and tells once", func() {
		w, agent, pv := recyclingOnNode()
		w.delete(Node("n1"))
		w.delete(Claim())
		agent.settle()
		agent.settle()
		Expect(tellingOf(w.told(), "VolumeFailedRecycle")).To(ConsistOf(ContainSubstring("no node has the label")))
		w.create(Node("n1"))
		agent.settle()
		expectPhase(w, pv, corev1.VolumeAvailable)
	})
})

// made changes a volume before it is created.
func made(change func(*corev1.PersistentVolume)) func(*world, *corev1.PersistentVolume) {
	return func(w *world, pv *corev1.PersistentVolume) {
		if w == nil {
			change(pv)
		}
	}
}

// inDirectory makes a volume one of a directory of a node.
func inDirectory(path string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}
	}
}

// recyclingOnNode is a cluster with a claim, and a volume of policy Recycle bound to it
// whose data is on a node.
func recyclingOnNode(options ...func(*corev1.PersistentVolume)) (*world, *janitor, *corev1.PersistentVolume) {
	GinkgoHelper()
	w := newWorld(reconciler.ClusterScope)
	claim, pv := Claim(InClass("")), Volume("scratch", inDirectory(scratch), OnNode("n1"), Reclaimed(corev1.PersistentVolumeReclaimRecycle))
	for _, option := range options {
		option(pv)
	}
	w.create(Node("n1"), claim, pv)
	w.settle()
	expectBound(w, claim, pv)
	w.told()
	return w, &janitor{w: w, files: map[string]string{scratch: "data"}}, pv
}
