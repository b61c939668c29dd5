package config_test

import (
	"os"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// withComponent is config/default with a component, as the component's comment says it.
func withComponent(ctx SpecContext, name string) []*unstructured.Unstructured {
	GinkgoHelper()
	parent := GinkgoT().TempDir()
	relative := func(path string) string {
		way, err := filepath.Rel(parent, path)
		Expect(err).NotTo(HaveOccurred())
		return way
	}
	list := "resources: [" + relative(folder("default")) + "]\ncomponents: [" + relative(folder("components", name)) + "]\n"
	Expect(os.WriteFile(filepath.Join(parent, "kustomization.yaml"), []byte(list), 0o600)).To(Succeed())
	return built(ctx, parent)
}

// pods are the templates of the managers and of the node agents.
func pods(objects []*unstructured.Unstructured) map[string]corev1.PodTemplateSpec {
	GinkgoHelper()
	return map[string]corev1.PodTemplateSpec{
		"stowage-manager":    found[appsv1.Deployment](objects, "Deployment", "stowage-manager").Spec.Template,
		"stowage-node-agent": found[appsv1.DaemonSet](objects, "DaemonSet", "stowage-node-agent").Spec.Template,
	}
}

// raw is the object of a kind and name among those built, of a kind that this API server does not have.
func raw(objects []*unstructured.Unstructured, kind, name string) map[string]any {
	GinkgoHelper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object.Object
		}
	}
	Fail("there is no " + kind + " " + name)
	return nil
}

// field is one of an object of a kind that this API server does not have.
func field[T any](object map[string]any, path ...string) T {
	GinkgoHelper()
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	Expect(err).NotTo(HaveOccurred())
	Expect(found).To(BeTrue(), "%v", path)
	typed, isTyped := value.(T)
	Expect(isTyped).To(BeTrue(), "%v is %T", path, value)
	return typed
}

var _ = Describe("a component", func() {
	DescribeTable("marks its objects as what can be removed, with a version:", func(ctx SpecContext, name string) {
		for _, object := range withComponent(ctx, name) {
			Expect(object.GetLabels()).To(HaveKeyWithValue(versionLabel, "dev"), object.GetName())
			// `make undeploy` deletes what has the name. CRDs stay, and volumes with them.
			isRemoved := Equal(object.GetKind() != "CustomResourceDefinition")
			Expect(object.GetLabels()["app.kubernetes.io/name"] == "stowage").To(isRemoved, object.GetName())
		}
	},
		Entry(nil, "grafana"), Entry(nil, "metrics-certificates"), Entry(nil, "network-policy"), Entry(nil, "openshift"),
		Entry(nil, "priority-quota"), Entry(nil, "prometheus"),
	)

	It("has Prometheus scrape each program at a port that it has, as one that may read metrics", func(ctx SpecContext) {
		objects := withComponent(ctx, "prometheus")
		for name, pod := range pods(objects) {
			monitor := raw(objects, "PodMonitor", name)
			selector := field[map[string]any](monitor, "spec", "selector", "matchLabels")
			for label, value := range selector {
				Expect(pod.Labels).To(HaveKeyWithValue(label, value), name)
			}
			endpoint := field[[]any](monitor, "spec", "podMetricsEndpoints")[0].(map[string]any)
			Expect(pod.Spec.Containers[0].Ports).To(ContainElement(HaveField("Name", endpoint["port"])), name)
			Expect(endpoint).To(HaveKeyWithValue("scheme", "https"), name)
			secret := found[corev1.Secret](objects, "Secret", field[string](endpoint, "bearerTokenSecret", "name"))
			binding := found[rbacv1.ClusterRoleBinding](objects, "ClusterRoleBinding", "stowage-metrics")
			Expect(secret.Annotations[corev1.ServiceAccountNameKey]).To(Equal(binding.Subjects[0].Name))
			Expect(binding.RoleRef.Name).To(Equal("stowage-metrics-reader"))
		}
		Expect(raw(objects, "PrometheusRule", "stowage")).NotTo(BeNil())
		apply(ctx, slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
			return object.GroupVersionKind().Group == "monitoring.coreos.com"
		}))
	})

	It("brings the dashboard as a ConfigMap that Grafana's sidecar finds", func(ctx SpecContext) {
		objects := withComponent(ctx, "grafana")
		dashboard := found[corev1.ConfigMap](objects, "ConfigMap", "stowage-dashboard")
		Expect(dashboard.Labels).To(HaveKeyWithValue("grafana_dashboard", "1"))
		Expect(dashboard.Data["stowage.json"]).To(ContainSubstring("stowage_backend_ready"))
		apply(ctx, objects)
	})

	It("lets only namespaces that are marked for it read the manager's metrics", func(ctx SpecContext) {
		objects := withComponent(ctx, "network-policy")
		policy := found[networkingv1.NetworkPolicy](objects, "NetworkPolicy", "stowage-manager")
		manager := pods(objects)["stowage-manager"]
		Expect(labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(manager.Labels))).To(BeTrue())
		Expect(policy.Spec.Ingress).To(HaveLen(1))
		Expect(policy.Spec.Ingress[0].From[0].NamespaceSelector.MatchLabels).To(Equal(map[string]string{"stowage.dev/metrics": "enabled"}))
		Expect(manager.Spec.Containers[0].Ports).To(ContainElement(HaveField("Name", policy.Spec.Ingress[0].Ports[0].Port.StrVal)))
		apply(ctx, objects)
	})

	It("admits pods of the priorities that Stowage's have, where a quota must allow them", func(ctx SpecContext) {
		objects := withComponent(ctx, "priority-quota")
		quota := found[corev1.ResourceQuota](objects, "ResourceQuota", "stowage-critical-pods")
		scope := quota.Spec.ScopeSelector.MatchExpressions[0]
		Expect(scope.ScopeName).To(Equal(corev1.ResourceQuotaScopePriorityClass))
		for name, pod := range pods(objects) {
			Expect(scope.Values).To(ContainElement(pod.Spec.PriorityClassName), name)
		}
		apply(ctx, objects)
	})

	It("allows pods on OpenShift what they ask for, and the manager no more than that", func(ctx SpecContext) {
		objects := withComponent(ctx, "openshift")
		for name, pod := range pods(objects) {
			constraints := raw(objects, "SecurityContextConstraints", name)
			Expect(constraints["users"]).To(ConsistOf("system:serviceaccount:stowage-system:" + pod.Spec.ServiceAccountName))
			privileged := pod.Spec.Containers[0].SecurityContext.Privileged
			Expect(constraints["allowPrivilegedContainer"]).To(Equal(privileged != nil && *privileged), name)
			Expect(constraints["allowHostNetwork"]).To(Equal(pod.Spec.HostNetwork), name)
			Expect(constraints["allowHostDirVolumePlugin"]).To(Equal(slices.ContainsFunc(pod.Spec.Volumes, isHostPath)), name)
			Expect(slices.ContainsFunc(constraints["volumes"].([]any), func(kind any) bool { return kind == "hostPath" })).
				To(Equal(slices.ContainsFunc(pod.Spec.Volumes, isHostPath)), name)
		}
		manager := raw(objects, "SecurityContextConstraints", "stowage-manager")
		Expect(manager["requiredDropCapabilities"]).To(ConsistOf("ALL"))
		Expect(field[string](manager, "runAsUser", "type")).To(Equal("MustRunAsNonRoot"))
	})

	It("has programs serve metrics with certificates that are made for it", func(ctx SpecContext) {
		objects := withComponent(ctx, "metrics-certificates")
		certificate := raw(objects, "Certificate", "stowage-metrics")
		for name, pod := range pods(objects) {
			Expect(pod.Spec.Volumes).To(ContainElement(HaveField("Secret", HaveField("SecretName", field[string](certificate, "spec", "secretName")))))
			Expect(pod.Spec.Containers[0].VolumeMounts).To(ContainElement(HaveField("MountPath", "/etc/stowage/metrics")))
			Expect(pod.Spec.Containers[0].Args).To(ContainElement("--metrics-cert-dir=/etc/stowage/metrics"))
			expectFlags(ctx, name[len("stowage-"):], pod.Spec.Containers[0])
		}
	})
})

func isHostPath(volume corev1.Volume) bool { return volume.HostPath != nil }
