package v1alpha1_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// volume is the spec of a valid NodeVolume, with some lines replaced or added:
// "key: value".
func volume(lines ...string) string {
	spec := []string{
		"nodeName: node-a", "backend: fast", "path: /var/lib/stowage/fast", "capacity: 1Gi",
		"claimRef: {namespace: shop, name: orders, uid: 7c9d3a52-0000-4000-8000-000000000001}",
	}
	for _, line := range lines {
		key, _, _ := strings.Cut(line, ":")
		spec = slices.DeleteFunc(spec, func(old string) bool { return strings.HasPrefix(old, key+":") })
		spec = append(spec, line)
	}
	return strings.Join(spec, "\n")
}

var _ = Describe("a NodeVolume", func() {
	DescribeTable("is accepted with",
		func(ctx SpecContext, spec string) {
			Expect(api.Create(ctx, object("NodeVolume", "valid", spec), client.DryRunAll)).To(Succeed())
		},
		Entry("what the manager must say", volume()),
		Entry("a capacity as a bare number of bytes", volume("capacity: 1073741824")),
		Entry("a capacity beyond any disk, which is the agent's to refuse", volume("capacity: 500Ti")),
		Entry("a block device in an image", volume("volumeMode: Block", "layout: Image")),
		Entry("a file system in an image", volume("layout: Image", "fsType: xfs")),
		Entry("a sparse image", volume("layout: Image", "allocation: Sparse")),
		Entry("a reserve", volume("reservedCapacity: 1Gi")),
		Entry("a volume to copy", volume("source: pvc-1")),
	)

	DescribeTable("is refused, with a message that helps, for",
		func(ctx SpecContext, spec, message string) {
			err := api.Create(ctx, object("NodeVolume", "invalid", spec), client.DryRunAll)
			Expect(err).To(MatchError(ContainSubstring(message)))
		},
		Entry("no node", volume("nodeName: ''"), "spec.nodeName in body should be at least 1 chars long"),
		Entry("no claim", volume("claimRef: {}"), "spec.claimRef.uid: Required value"),
		Entry("a claim whose uid is a path", volume("claimRef: {namespace: a, name: b, uid: ../x}"), "uid must be the uid of a claim"),
		Entry("a path that climbs up", volume("path: /var/lib/../etc"), "must be an absolute path without empty, '.' or '..' parts"),
		Entry("no capacity", volume("capacity: 0"), "capacity must be a whole number of bytes, such as 10Gi, and more than 0"),
		Entry("a negative capacity", volume("capacity: -1Gi"), "capacity must be a whole number of bytes, such as 10Gi, and more than 0"),
		Entry("a capacity that no file system has", volume("capacity: 10E"), "capacity must be at most 4Ei"),
		Entry("a fraction of a byte", volume("capacity: 100m"), "capacity must be a whole number of bytes, such as 10Gi, and more than 0"),
		Entry("a negative reserve", volume("reservedCapacity: -1"), "reservedCapacity must be a whole number of bytes, such as 10Gi, and not negative"),
		Entry("a block device in a directory", volume("volumeMode: Block", "layout: Directory"), "volumeMode Block needs layout Image"),
		Entry("a block device in the default layout", volume("volumeMode: Block"), "volumeMode Block needs layout Image"),
		Entry("an unknown file system", volume("fsType: btrfs"), `supported values: "ext4", "xfs"`),
		Entry("an unknown allocation", volume("allocation: Thin"), `supported values: "Full", "Sparse"`),
		Entry("no name of a volume to copy", volume("source: ''"), "spec.source in body should be at least 1 chars long"),
		Entry("an unknown field", volume("colour: red"), `unknown field "spec.colour"`),
	)

	DescribeTable("can't be changed in",
		func(ctx SpecContext, before, after, message string) {
			existing := created(ctx, "NodeVolume", before)
			Expect(changed(ctx, existing, after)).To(MatchError(ContainSubstring(message)))
		},
		Entry("its node", volume(), volume("nodeName: node-b"), "nodeName is immutable"),
		Entry("its backend", volume(), volume("backend: slow"), "backend is immutable"),
		Entry("its path", volume(), volume("path: /var/lib/stowage/slow"), "path is immutable"),
		Entry("its layout", volume(), volume("layout: Image"), "layout is immutable"),
		Entry("its volume mode", volume("layout: Image"), volume("layout: Image", "volumeMode: Block"), "volumeMode is immutable"),
		Entry("its file system", volume("fsType: ext4"), volume("fsType: xfs"), "fsType is immutable"),
		Entry("its file system, when it had none", volume(), volume("fsType: xfs"), "fsType is immutable"),
		Entry("its allocation", volume("allocation: Full"), volume("allocation: Sparse"), "allocation is immutable"),
		Entry("its allocation, when it said nothing", volume(), volume("allocation: Sparse"), "allocation is immutable"),
		Entry("what it is a copy of", volume("source: pvc-1"), volume("source: pvc-2"), "source is immutable"),
		Entry("what it is a copy of, when it began empty", volume(), volume("source: pvc-1"), "source is immutable"),
		Entry("its reserve", volume("reservedCapacity: 1Gi"), volume("reservedCapacity: 2Gi"), "reservedCapacity is immutable"),
		Entry("its owner's name", volume(), volume("claimRef: {namespace: shop, name: other, uid: 7c9d3a52-0000-4000-8000-000000000001}"), "claimRef is immutable"),
		Entry("its owner's uid", volume(), volume("claimRef: {namespace: shop, name: orders, uid: other}"), "claimRef is immutable"),
		Entry("that it is made", volume("adopt: true"), volume(), "adopt is immutable"),
		Entry("that it is not made", volume(), volume("adopt: true"), "adopt is immutable"),
	)

	DescribeTable("can be changed in",
		func(ctx SpecContext, before, after string) {
			Expect(changed(ctx, created(ctx, "NodeVolume", before), after)).To(Succeed())
		},
		Entry("its capacity, to more", volume(), volume("capacity: 1025Mi")),
		Entry("its capacity, to less, where nothing was given yet", volume("capacity: 2Gi"), volume("capacity: 1Gi")),
		Entry("what becomes of its data", volume(), volume("removeData: true")),
		Entry("the order to remove its data", volume("removeData: true"), volume("removeData: false")),
		Entry("the order to remove its data, left out", volume("removeData: true"), volume()),
		Entry("the way its capacity is written", volume(), volume("capacity: 1073741824")),
		Entry("the way its reserve is written", volume("reservedCapacity: 1Gi"), volume("reservedCapacity: 1024Mi")),
	)

	It("is a directory with a file system where nothing else is said", func(ctx SpecContext) {
		made := object("NodeVolume", "defaults", volume())
		Expect(api.Create(ctx, made, client.DryRunAll)).To(Succeed())
		spec, _, err := unstructured.NestedMap(made.Object, "spec")
		Expect(err).NotTo(HaveOccurred())
		Expect(spec).To(And(HaveKeyWithValue("layout", "Directory"), HaveKeyWithValue("volumeMode", "Filesystem")))
	})

	It("is never asked to have less than it was given, and never given more than it was asked to have", func(ctx SpecContext) {
		made := created(ctx, "NodeVolume", volume("capacity: 2Gi"))
		given := func(capacity string) error {
			status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"capacity":"`+capacity+`"}}`))
			return api.Status().Patch(ctx, made, status)
		}
		Expect(given("1Gi")).To(Succeed())
		Expect(changed(ctx, made, volume("capacity: 1Gi"))).To(Succeed())
		Expect(changed(ctx, made, volume("capacity: 1G"))).To(MatchError(ContainSubstring("can't be less than the volume has")))
		Expect(given("1025Mi")).To(MatchError(ContainSubstring("can't be less than the volume has")))
	})

	It("can't be kept any more once its agent has begun to remove it", func(ctx SpecContext) {
		made := created(ctx, "NodeVolume", volume("removeData: true"))
		removing := func(begun string) error {
			return api.Status().Patch(ctx, made, client.RawPatch(types.MergePatchType, []byte(`{"status":{"removing":`+begun+`}}`)))
		}
		Expect(removing("true")).To(Succeed())

		Expect(changed(ctx, made, volume())).To(MatchError(ContainSubstring("the node's agent has begun to remove the data")))
		Expect(removing("null")).To(MatchError(ContainSubstring("status.removing can't be taken back")))
	})

	It("is found by its node", func(ctx SpecContext) {
		created(ctx, "NodeVolume", volume("nodeName: node-a"))
		wanted := created(ctx, "NodeVolume", volume("nodeName: node-b"))

		found := &stowagev1alpha1.NodeVolumeList{}
		Expect(api.List(ctx, found, client.MatchingFields{"spec.nodeName": "node-b"})).To(Succeed())
		Expect(found.Items).To(ConsistOf(HaveField("Name", wanted.GetName())))
	})
})
