package nodemanager_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/csinode"
)

var _ = Describe("A node's CSINode", func() {
	var (
		w       *world
		drivers *csinode.Drivers
	)

	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		w.register(ctx)
		// With the node's own credential.
		own, err := client.New(w.user, client.Options{Scheme: types})
		Expect(err).NotTo(HaveOccurred())
		drivers = &csinode.Drivers{NodeName: w.node, Client: own, Live: own, Wanted: []storagev1.CSINodeDriver{
			{Name: "disks.example.com", NodeID: w.node, TopologyKeys: []string{"zone"}, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(3))}},
		}}
	})

	said := func(ctx SpecContext) []storagev1.CSINodeDriver {
		GinkgoHelper()
		node := &storagev1.CSINode{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: w.node}, node)).To(Succeed())
		Expect(node.Annotations).To(HaveKeyWithValue(stowagev1alpha1.FollowsPodsAnnotation, "true"))
		Expect(node.OwnerReferences).To(ConsistOf(HaveField("Kind", "Node")))
		return node.Spec.Drivers
	}

	It("has the drivers that serve the node, and their limits", func(ctx SpecContext) {
		Expect(drivers.Ensure(ctx)).To(Succeed())
		Expect(said(ctx)).To(ConsistOf(And(HaveField("Name", "disks.example.com"), HaveField("Allocatable.Count", HaveValue(BeEquivalentTo(3))))))
	})

	It("has the drivers of the agent, and keeps the entries of other drivers", func(ctx SpecContext) {
		Expect(drivers.Ensure(ctx)).To(Succeed())
		node := &storagev1.CSINode{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: w.node}, node)).To(Succeed())
		node.Annotations = map[string]string{"example.com/theirs": "stays"}
		node.Spec.Drivers = append(node.Spec.Drivers, storagev1.CSINodeDriver{Name: "other.example.com", NodeID: "other"})
		Expect(admin.Update(ctx, node)).To(Succeed())
		drivers.Wanted[0].Allocatable.Count = new(int32(5))

		Expect(drivers.Ensure(ctx)).To(Succeed())

		Expect(admin.Get(ctx, client.ObjectKey{Name: w.node}, node)).To(Succeed())
		Expect(node.Annotations).To(HaveKeyWithValue("example.com/theirs", "stays"))
		Expect(said(ctx)).To(ConsistOf(HaveField("Name", "other.example.com"), HaveField("Allocatable.Count", HaveValue(BeEquivalentTo(5)))))
	})

	It("has a driver that registers until that is removed, and the Node its topology", func(ctx SpecContext) {
		Expect(drivers.Ensure(ctx)).To(Succeed())
		info := csinode.Info{Driver: "foreign.example.com", NodeID: "id", MaxVolumes: 7, Topology: map[string]string{"example.com/zone": "a"}}
		Expect(drivers.Install(ctx, info)).To(Succeed())
		info.NodeID = "changed"
		Expect(drivers.Install(ctx, info)).To(Succeed())
		Expect(said(ctx)).To(ConsistOf(HaveField("Name", "disks.example.com"), And(
			HaveField("NodeID", "changed"), HaveField("TopologyKeys", []string{"example.com/zone"}), HaveField("Allocatable.Count", HaveValue(BeEquivalentTo(7))))))
		node := &corev1.Node{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: w.node}, node)).To(Succeed())
		Expect(node.Labels).To(HaveKeyWithValue("example.com/zone", "a"))

		By("being written again where it is lost")
		lost := &storagev1.CSINode{}
		Expect(admin.Get(ctx, client.ObjectKey{Name: w.node}, lost)).To(Succeed())
		lost.Spec.Drivers = nil
		Expect(admin.Update(ctx, lost)).To(Succeed())
		Expect(drivers.Ensure(ctx)).To(Succeed())
		Expect(said(ctx)).To(ContainElement(HaveField("Name", "foreign.example.com")))

		Expect(drivers.Remove(ctx, "foreign.example.com")).To(Succeed())
		Expect(said(ctx)).To(ConsistOf(HaveField("Name", "disks.example.com")))
	})

	It("refuses what a driver can't say, and nothing of the other drivers", func(ctx SpecContext) {
		info := csinode.Info{Driver: "foreign.example.com", NodeID: "id", Topology: map[string]string{stowagev1alpha1.TopologyNodeLabel: "elsewhere"}}
		Expect(drivers.Install(ctx, info)).To(MatchError(ContainSubstring("its label says " + w.node)))
		for says, wrong := range map[string]csinode.Info{
			"no id":        {},
			"bytes":        {NodeID: strings.Repeat("x", 257)},
			"volumes":      {NodeID: "id", MaxVolumes: -1},
			"can't be a":   {NodeID: "id", Topology: map[string]string{"not a key": "a"}},
			"be a label":   {NodeID: "id", Topology: map[string]string{"example.com/zone": "not a value"}},
			"is not allow": {NodeID: "id", Topology: map[string]string{"node-restriction.kubernetes.io/x": "a"}},
		} {
			wrong.Driver = "foreign.example.com"
			Expect(drivers.Install(ctx, wrong)).To(MatchError(ContainSubstring(says)))
		}
		Expect(drivers.Ensure(ctx)).To(Succeed())
		Expect(said(ctx)).To(ConsistOf(HaveField("Name", "disks.example.com")))
	})
})
