package v1alpha1_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const scratchOfA = `{nodeName: node-a, path: /srv/scratch, volume: {uid: u1, resourceVersion: "7"}, claimRef: {namespace: shop, name: orders, uid: c1}}`

// scratchWith is scratchOfA with a part of it replaced.
func scratchWith(part, by string) string { return strings.Replace(scratchOfA, part, by, 1) }

var _ = Describe("a NodeRecycling", func() {
	It("can be approved, again and again", func(ctx SpecContext) {
		recycling := created(ctx, "NodeRecycling", scratchOfA)
		for _, asked := range []string{"first", "second"} {
			Expect(changed(ctx, recycling, scratchWith("{nodeName", "{approved: "+asked+", nodeName"))).To(Succeed())
		}
	})

	DescribeTable("can't be changed in",
		func(ctx SpecContext, part, by, message string) {
			Expect(changed(ctx, created(ctx, "NodeRecycling", scratchOfA), scratchWith(part, by))).To(MatchError(ContainSubstring(message)))
		},
		Entry("its node", "node-a", "node-b", "nodeName is immutable"),
		Entry("its path", "scratch", "other", "path is immutable"),
		Entry("its volume", "u1", "u2", "volume is immutable"),
		Entry("the volume's version", `"7"`, `"8"`, "volume is immutable"),
		Entry("its claim", "c1", "c2", "claimRef is immutable"),
	)

	DescribeTable("is refused with",
		func(ctx SpecContext, path string) {
			Expect(api.Create(ctx, object("NodeRecycling", "refused", scratchWith("/srv/scratch", path)), client.DryRunAll)).
				To(MatchError(ContainSubstring("must be an absolute path")))
		},
		Entry("a path that climbs", "/srv/../etc"),
		Entry("a relative path", "srv/scratch"),
	)

	It("is listed by node, so that an agent sees only its own", func(ctx SpecContext) {
		created(ctx, "NodeRecycling", scratchWith("node-a", "node-of-its-own"))
		created(ctx, "NodeRecycling", scratchOfA)
		recyclings := &stowagev1alpha1.NodeRecyclingList{}
		Expect(api.List(ctx, recyclings, client.MatchingFields{"spec.nodeName": "node-of-its-own"})).To(Succeed())
		Expect(recyclings.Items).To(HaveLen(1))
	})

	It("is shown with its node, path and outcome", func(ctx SpecContext) {
		name := created(ctx, "NodeRecycling", scratchOfA).GetName()
		setStatus(ctx, &stowagev1alpha1.NodeRecycling{}, name, `{"status": {
			"conditions": [{"type": "Emptied", "status": "False", "reason": "InUse", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)

		cells := shown(ctx, "noderecyclings", name)
		for column, want := range map[string]string{"Node": "node-a", "Path": "/srv/scratch", "Emptied": "False", "Reason": "InUse"} {
			Expect(cells[column]).To(Equal(want), column)
		}
	})
})
