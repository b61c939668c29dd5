package v1alpha1_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// shown is what kubectl shows of one object: column name to cell. Columns that
// only -o wide shows are left out.
func shown(ctx SpecContext, resource, name string) map[string]any {
	GinkgoHelper()
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	table := &metav1.Table{}
	Expect(discovered.RESTClient().Get().AbsPath("/apis", stowagev1alpha1.GroupVersion.String(), resource, name).
		SetHeader("Accept", asTable).Do(ctx).Into(table)).To(Succeed())
	Expect(table.Rows).To(HaveLen(1))

	cells := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			cells[column.Name] = table.Rows[0].Cells[i]
		}
	}
	return cells
}

var _ = Describe("kubectl get", func() {
	It("shows a StorageBackend's kind, readiness and its reason, capacity and volumes", func(ctx SpecContext) {
		name := created(ctx, "StorageBackend", local).GetName()
		setStatus(ctx, &stowagev1alpha1.StorageBackend{}, name, `{"status": {"type": "Local", "volumes": 3,
			"capacity": {"total": "100Gi", "used": "12Gi"},
			"conditions": [{"type": "Ready", "status": "False", "reason": "ProbeFailed", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)

		Expect(shown(ctx, "storagebackends", name)).To(MatchAllKeys(Keys{
			"Name": Equal(name), "Type": Equal("Local"), "Ready": Equal("False"), "Reason": Equal("ProbeFailed"),
			"Capacity": Equal("100Gi"), "Used": Equal("12Gi"), "Volumes": BeEquivalentTo(3), "Age": Not(BeEmpty()),
		}))
	})

	It("shows a NodeVolume's node, backend, capacity, layout, readiness and health", func(ctx SpecContext) {
		name := created(ctx, "NodeVolume", volume()).GetName()
		setStatus(ctx, &stowagev1alpha1.NodeVolume{}, name, `{"status": {"capacity": "1Gi", "used": "100Mi", "conditions": [
			{"type": "Ready", "status": "False", "reason": "Lost", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
			{"type": "Healthy", "status": "False", "reason": "Lost", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)

		Expect(shown(ctx, "nodevolumes", name)).To(MatchAllKeys(Keys{
			"Name": Equal(name), "Node": Equal("node-a"), "Backend": Equal("fast"), "Capacity": Equal("1Gi"),
			"Used": Equal("100Mi"), "Layout": Equal("Directory"), "Ready": Equal("False"), "Healthy": Equal("False"), "Age": Not(BeEmpty()),
		}))
	})
})

// setStatus merges into an object's status, as the operator's programs do.
func setStatus(ctx SpecContext, of client.Object, name, patch string) {
	GinkgoHelper()
	of.SetName(name)
	Expect(api.Status().Patch(ctx, of, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}
