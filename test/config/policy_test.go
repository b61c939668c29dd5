package config_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

const (
	agentAccount  = "system:serviceaccount:stowage-system:stowage-node-agent"
	nodeOfToken   = "authentication.kubernetes.io/node-name"
	beyondItsNode = "must not write a NodeVolume of node"
)

// behindKubelet is an agent of the DaemonSet: a service account whose token
// names the node that it was issued for.
func behindKubelet(node string, groups ...string) client.Client {
	return impersonated(agentAccount, map[string][]string{nodeOfToken: {node}}, groups...)
}

// followingPods is an agent that has its node's own credential.
func followingPods(node string, groups ...string) client.Client {
	return impersonated("system:node:"+node, nil, append(groups, "system:nodes")...)
}

func impersonated(user string, extra map[string][]string, groups ...string) client.Client {
	GinkgoHelper()
	config := rest.CopyConfig(server.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: user, Extra: extra, Groups: append(groups, "system:authenticated"),
	}
	return connect(config)
}

var volumes int

// nodeVolume makes a volume of a node, and removes it after the spec.
func nodeVolume(ctx SpecContext, node string) *stowagev1alpha1.NodeVolume {
	GinkgoHelper()
	volume := newNodeVolume(node)
	Expect(admin.Create(ctx, volume)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, volume))).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Patch(ctx, volume, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata": {"finalizers": null}}`))))).To(Succeed())
	})
	return volume
}

func newNodeVolume(node string) *stowagev1alpha1.NodeVolume {
	volumes++
	return &stowagev1alpha1.NodeVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:       fmt.Sprintf("pvc-%d", volumes),
			Labels:     map[string]string{stowagev1alpha1.BackendLabel: "fast"},
			Finalizers: []string{stowagev1alpha1.NodeVolumeFinalizer, "example.com/hold"},
		},
		Spec: stowagev1alpha1.NodeVolumeSpec{
			NodeName: node, Backend: "fast", Path: "/var/lib/stowage/fast", Capacity: resource.MustParse("1Gi"),
			ClaimRef: stowagev1alpha1.ClaimReference{Namespace: "shop", Name: "orders", UID: "1"},
		},
	}
}

// patched is the outcome of changing a copy of a volume and sending the difference.
func patched(ctx SpecContext, as client.Client, volume *stowagev1alpha1.NodeVolume, change func(*stowagev1alpha1.NodeVolume)) error {
	after := volume.DeepCopy()
	change(after)
	return as.Patch(ctx, after, client.MergeFrom(volume))
}

func statusPatched(ctx SpecContext, as client.Client, volume *stowagev1alpha1.NodeVolume) error {
	after := volume.DeepCopy()
	after.Status.Path = "/var/lib/stowage/fast/" + volume.Name
	return as.Status().Patch(ctx, after, client.MergeFrom(volume))
}

// nodeDisk makes a disk of a node, and removes it after the spec.
func nodeDisk(ctx SpecContext, node string) *stowagev1alpha1.NodeDisk {
	GinkgoHelper()
	disk := &stowagev1alpha1.NodeDisk{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "fast-"},
		Spec:       stowagev1alpha1.NodeDiskSpec{NodeName: node, Backend: "fast", Path: "/var/lib/stowage/fast"},
	}
	Expect(admin.Create(ctx, disk)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, disk)).To(Succeed()) })
	return disk
}

func diskStatusPatched(ctx SpecContext, as client.Client, disk *stowagev1alpha1.NodeDisk) error {
	after := disk.DeepCopy()
	after.Status.Total = new(resource.MustParse("1Gi"))
	return as.Status().Patch(ctx, after, client.MergeFrom(disk))
}

// nodeRecycling asks a node to empty a directory, and takes that back after the spec.
func nodeRecycling(ctx SpecContext, node string) *stowagev1alpha1.NodeRecycling {
	GinkgoHelper()
	recycling := &stowagev1alpha1.NodeRecycling{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "scratch-"},
		Spec: stowagev1alpha1.NodeRecyclingSpec{
			NodeName: node, Path: "/srv/scratch", Volume: stowagev1alpha1.VolumeVersion{UID: "1", ResourceVersion: "1"},
			ClaimRef: stowagev1alpha1.ClaimReference{Namespace: "shop", Name: "orders", UID: "1"},
		},
	}
	Expect(admin.Create(ctx, recycling)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, recycling)).To(Succeed()) })
	return recycling
}

var _ = Describe("the policy of node agents", func() {
	BeforeEach(func(ctx SpecContext) {
		apply(ctx, built(ctx, folder("run")))
		awaitPolicy(ctx)
	})

	for _, identity := range []struct {
		text string
		of   func(node string, groups ...string) client.Client
	}{{"behind a kubelet", behindKubelet}, {"that follows pods", followingPods}} {
		Describe("for an agent "+identity.text, func() {
			var agent client.Client
			BeforeEach(func() { agent = identity.of("node-a") })

			It("lets it write the status of its node's volumes", func(ctx SpecContext) {
				Expect(statusPatched(ctx, agent, nodeVolume(ctx, "node-a"))).To(Succeed())
			})

			It("lets it take its finalizer from a volume that is being deleted", func(ctx SpecContext) {
				volume := nodeVolume(ctx, "node-a")
				Expect(admin.Delete(ctx, volume)).To(Succeed())
				Expect(patched(ctx, agent, volume, removeOurFinalizer)).To(Succeed())
			})

			It("keeps its finalizer on a volume that is not", func(ctx SpecContext) {
				Expect(patched(ctx, agent, nodeVolume(ctx, "node-a"), removeOurFinalizer)).
					To(MatchError(ContainSubstring("must not take the finalizer from a NodeVolume that is not being deleted")))
			})

			It("keeps others' finalizers", func(ctx SpecContext) {
				Expect(patched(ctx, agent, nodeVolume(ctx, "node-a"), func(volume *stowagev1alpha1.NodeVolume) {
					volume.Finalizers = volume.Finalizers[:1]
				})).To(MatchError(ContainSubstring("must not change anything but the finalizer")))
			})

			It("keeps labels", func(ctx SpecContext) {
				Expect(patched(ctx, agent, nodeVolume(ctx, "node-a"), func(volume *stowagev1alpha1.NodeVolume) {
					volume.Labels = nil
				})).To(MatchError(ContainSubstring("must not change anything but the finalizer")))
			})

			It("keeps the spec", func(ctx SpecContext) {
				Expect(patched(ctx, agent, nodeVolume(ctx, "node-a"), func(volume *stowagev1alpha1.NodeVolume) {
					volume.Spec.Capacity = resource.MustParse("2Gi")
				})).To(MatchError(ContainSubstring("must not change the spec of a NodeVolume")))
			})

			It("refuses the status of another node's volume", func(ctx SpecContext) {
				Expect(statusPatched(ctx, agent, nodeVolume(ctx, "node-b"))).To(MatchError(ContainSubstring(beyondItsNode)))
			})

			It("lets it write the status of its node's disks, and of no other's", func(ctx SpecContext) {
				Expect(diskStatusPatched(ctx, agent, nodeDisk(ctx, "node-a"))).To(Succeed())
				Expect(diskStatusPatched(ctx, agent, nodeDisk(ctx, "node-b"))).
					To(MatchError(ContainSubstring("must not write a NodeDisk of node")))
			})

			It("keeps a disk's spec", func(ctx SpecContext) {
				disk := nodeDisk(ctx, "node-a")
				after := disk.DeepCopy()
				after.Spec.Replaces = stowagev1alpha1.ReplacesUnknown
				Expect(apierrors.IsForbidden(agent.Patch(ctx, after, client.MergeFrom(disk)))).To(BeTrue())
			})

			It("lets it answer what it is asked to empty on its node, and approve of nothing", func(ctx SpecContext) {
				own, other := nodeRecycling(ctx, "node-a"), nodeRecycling(ctx, "node-b")
				asking := client.RawPatch(types.MergePatchType, []byte(`{"status": {"asking": "now"}}`))
				Expect(agent.Status().Patch(ctx, own, asking)).To(Succeed())
				Expect(agent.Status().Patch(ctx, other, asking)).To(MatchError(ContainSubstring("must not write a NodeRecycling of node")))
				approving := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"approved": "now"}}`))
				Expect(apierrors.IsForbidden(agent.Patch(ctx, own, approving))).To(BeTrue())
				Expect(identity.of("node-a", "system:masters").Patch(ctx, own, approving)).
					To(MatchError(ContainSubstring("must not change the spec of a NodeRecycling")))
			})

			It("refuses the finalizer of another node's volume", func(ctx SpecContext) {
				volume := nodeVolume(ctx, "node-b")
				Expect(admin.Delete(ctx, volume)).To(Succeed())
				Expect(patched(ctx, agent, volume, removeOurFinalizer)).To(MatchError(ContainSubstring(beyondItsNode)))
			})

			It("refuses a new volume, were RBAC to let it through", func(ctx SpecContext) {
				agent = identity.of("node-a", "system:masters")
				Expect(agent.Create(ctx, newNodeVolume("node-a"), client.DryRunAll)).
					To(MatchError(ContainSubstring("must not create or delete NodeVolumes")))
			})

			It("refuses a deletion, were RBAC to let it through", func(ctx SpecContext) {
				agent = identity.of("node-a", "system:masters")
				Expect(agent.Delete(ctx, nodeVolume(ctx, "node-a"))).
					To(MatchError(ContainSubstring("must not create or delete NodeVolumes")))
			})
		})
	}

	It("gives an agent whose token names no node nothing to write", func(ctx SpecContext) {
		agent := impersonated(agentAccount, nil)
		Expect(statusPatched(ctx, agent, nodeVolume(ctx, "node-a"))).To(MatchError(ContainSubstring(beyondItsNode)))
	})

	It("holds where an overlay put Stowage into another namespace", func(ctx SpecContext) {
		agent := impersonated("system:serviceaccount:other:stowage-node-agent",
			map[string][]string{nodeOfToken: {"node-a"}}, "system:masters")
		Expect(statusPatched(ctx, agent, nodeVolume(ctx, "node-b"))).To(MatchError(ContainSubstring(beyondItsNode)))
	})

	It("is not about anybody else", func(ctx SpecContext) {
		volume := nodeVolume(ctx, "node-a")
		Expect(patched(ctx, admin, volume, func(volume *stowagev1alpha1.NodeVolume) {
			volume.Spec.Capacity = resource.MustParse("2Gi")
			volume.Labels = nil
		})).To(Succeed())
	})
})

func removeOurFinalizer(volume *stowagev1alpha1.NodeVolume) {
	volume.Finalizers = volume.Finalizers[1:]
}

// awaitPolicy waits until the API server enforces the policy: it reads policies
// through a watch of its own.
func awaitPolicy(ctx SpecContext) {
	GinkgoHelper()
	agent := followingPods("node-a", "system:masters")
	Eventually(func() error { return agent.Create(ctx, newNodeVolume("node-a"), client.DryRunAll) }).
		WithTimeout(settled).Should(MatchError(ContainSubstring("must not create or delete")))
}
