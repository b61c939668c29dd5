package v1alpha1_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const diskOfA = "{nodeName: node-a, backend: fast, path: /var/lib/stowage/fast}"

var _ = Describe("a NodeDisk", func() {
	It("can be told which disk it replaces, and how much to reserve", func(ctx SpecContext) {
		disk := created(ctx, "NodeDisk", diskOfA)
		Expect(changed(ctx, disk, "{nodeName: node-a, backend: fast, path: /var/lib/stowage/fast, replaces: unknown, reservedCapacity: 1Gi}")).To(Succeed())
	})

	DescribeTable("can't be changed in",
		func(ctx SpecContext, after, message string) {
			Expect(changed(ctx, created(ctx, "NodeDisk", diskOfA), after)).To(MatchError(ContainSubstring(message)))
		},
		Entry("its node", "{nodeName: node-b, backend: fast, path: /var/lib/stowage/fast}", "nodeName is immutable"),
		Entry("its backend", "{nodeName: node-a, backend: slow, path: /var/lib/stowage/fast}", "backend is immutable"),
		Entry("its path", "{nodeName: node-a, backend: fast, path: /var/lib/stowage/slow}", "path is immutable"),
	)

	It("is listed by node, so that an agent sees only its own", func(ctx SpecContext) {
		created(ctx, "NodeDisk", "{nodeName: node-of-its-own, backend: fast, path: /d}")
		created(ctx, "NodeDisk", diskOfA)
		disks := &stowagev1alpha1.NodeDiskList{}
		Expect(api.List(ctx, disks, client.MatchingFields{"spec.nodeName": "node-of-its-own"})).To(Succeed())
		Expect(disks.Items).To(HaveLen(1))
	})

	It("is shown with its node, backend, room and readiness", func(ctx SpecContext) {
		name := created(ctx, "NodeDisk", diskOfA).GetName()
		setStatus(ctx, &stowagev1alpha1.NodeDisk{}, name, `{"status": {"total": "100Gi", "available": "12Gi",
			"conditions": [{"type": "Ready", "status": "False", "reason": "DiskMissing", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)

		cells := shown(ctx, "nodedisks", name)
		for column, want := range map[string]string{
			"Node": "node-a", "Backend": "fast", "Total": "100Gi", "Available": "12Gi", "Ready": "False", "Reason": "DiskMissing",
		} {
			Expect(cells[column]).To(Equal(want), column)
		}
	})
})
