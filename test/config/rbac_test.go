package config_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
)

const managerAccount = "system:serviceaccount:stowage-system:stowage-manager"

// may asks the API server whether a user may do "verb resource.group in
// namespace"; group and namespace can be left out.
func may(ctx SpecContext, user, action string) bool {
	GinkgoHelper()
	action, namespace, _ := strings.Cut(action, " in ")
	verb, target, _ := strings.Cut(action, " ")
	target, subresource, _ := strings.Cut(target, "/")
	kind, group, _ := strings.Cut(target, ".")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: group, Resource: kind, Subresource: subresource,
		},
	}}
	Expect(admin.Create(ctx, review)).To(Succeed())
	return review.Status.Allowed
}

var _ = Describe("an identity of Stowage", func() {
	BeforeEach(func(ctx SpecContext) {
		apply(ctx, built(ctx, folder("run")))
		Eventually(may).WithArguments(ctx, agentAccount, "watch nodevolumes.stowage.dev").WithTimeout(settled).Should(BeTrue())
	})

	DescribeTable("may do its work:",
		func(ctx SpecContext, user string, actions ...string) {
			for _, action := range actions {
				Eventually(may).WithArguments(ctx, user, action).WithTimeout(settled).Should(BeTrue(), action)
			}
		},
		Entry("the manager leads", managerAccount,
			"create leases.coordination.k8s.io in stowage-system", "update leases.coordination.k8s.io in stowage-system"),
		Entry("the manager binds and provisions", managerAccount,
			"patch persistentvolumeclaims in shop", "patch persistentvolumeclaims/status in shop",
			"create persistentvolumes", "delete persistentvolumes", "patch persistentvolumes/status",
			"create events.events.k8s.io in shop", "list pods in shop", "watch nodes"),
		Entry("the manager keeps classes and backends", managerAccount,
			"create storageclasses.storage.k8s.io", "delete storageclasses.storage.k8s.io",
			"patch storagebackends.stowage.dev/status", "create nodevolumes.stowage.dev", "delete nodevolumes.stowage.dev",
			"create nodedisks.stowage.dev", "delete nodedisks.stowage.dev", "patch nodevolumes.stowage.dev/status"),
		Entry("the manager has volumes of nodes emptied", managerAccount,
			"create noderecyclings.stowage.dev", "patch noderecyclings.stowage.dev", "delete noderecyclings.stowage.dev"),
		Entry("the manager publishes capacity for the scheduler, from its own namespace", managerAccount,
			"create csistoragecapacities.storage.k8s.io in stowage-system", "delete csistoragecapacities.storage.k8s.io in stowage-system"),
		Entry("the manager reads the keys to clouds, from its own namespace", managerAccount, "get secrets in stowage-system", "watch secrets in stowage-system"),
		Entry("the agent makes what it is asked for", agentAccount,
			"watch nodevolumes.stowage.dev", "patch nodevolumes.stowage.dev", "patch nodevolumes.stowage.dev/status",
			"watch noderecyclings.stowage.dev", "patch noderecyclings.stowage.dev/status",
			"watch nodedisks.stowage.dev", "patch nodedisks.stowage.dev/status",
			"create events.events.k8s.io in shop"),
		Entry("the agent reports its zone to its kubelet, and finds backends that pods name", agentAccount,
			"get nodes", "get storagebackends.stowage.dev"),
	)

	DescribeTable("may do nothing else:",
		func(ctx SpecContext, user string, actions ...string) {
			for _, action := range actions {
				Expect(may(ctx, user, action)).To(BeFalse(), action)
			}
		},
		Entry("the manager reads no secrets of others and runs nothing", managerAccount,
			"get secrets in kube-system", "watch secrets in kube-system", "get secrets in shop", "list secrets in shop", "list secrets in stowage-system", "create pods in shop", "create pods/exec in shop",
			"update nodes", "create clusterrolebindings.rbac.authorization.k8s.io"),
		Entry("the manager asks nothing about other users", managerAccount,
			"create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io"),
		Entry("the agent asks nothing about other users", agentAccount,
			"create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io"),
		Entry("the manager takes no other namespace's lease", managerAccount,
			"update leases.coordination.k8s.io in kube-system"),
		Entry("the agent changes no claim, volume or pod, and reads no secrets", agentAccount,
			"update persistentvolumeclaims in shop", "update persistentvolumes", "delete pods in shop",
			"get secrets in shop", "get secrets in stowage-system", "update nodes", "patch nodes/status"),
		Entry("the agent reads no more than it needs by name", agentAccount,
			"list nodes", "watch nodes", "list storagebackends.stowage.dev", "get persistentvolumes", "get pods in shop"),
		Entry("the manager publishes no room elsewhere", managerAccount, "create csistoragecapacities.storage.k8s.io in kube-system"),
		Entry("the agent makes and removes no NodeDisks, and accepts none", agentAccount,
			"create nodedisks.stowage.dev", "delete nodedisks.stowage.dev", "patch nodedisks.stowage.dev"),
		Entry("the agent makes and removes no NodeVolumes, and changes no backend", agentAccount,
			"create nodevolumes.stowage.dev", "delete nodevolumes.stowage.dev", "update storagebackends.stowage.dev"),
		Entry("the agent approves of nothing that it asks itself", agentAccount,
			"create noderecyclings.stowage.dev", "patch noderecyclings.stowage.dev", "update noderecyclings.stowage.dev"),
	)
})
