package config_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

var _ = Describe("config", func() {
	DescribeTable("is accepted by an API server, whole, in",
		func(ctx SpecContext, overlay string) { apply(ctx, built(ctx, folder(overlay))) },
		Entry("the CRDs", "crd"),
		Entry("the identities alone", "rbac"),
		Entry("the drivers alone", "csidrivers"),
		Entry("what runs beside kube-controller-manager", "default"),
		Entry("what runs instead of its volume controllers", "standalone"),
		Entry("what `make run` applies", "run"),
	)

	It("has samples that are accepted", func(ctx SpecContext) {
		apply(ctx, built(ctx, folder("crd")))
		apply(ctx, built(ctx, folder("samples")))
	})

	It("has every sample in the samples' list", func() {
		files, err := filepath.Glob(folder("samples", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		list, err := os.ReadFile(folder("samples", "kustomization.yaml"))
		Expect(err).NotTo(HaveOccurred())
		for _, file := range files {
			if name := filepath.Base(file); name != "kustomization.yaml" {
				Expect(string(list)).To(ContainSubstring("- " + name + "\n"))
			}
		}
	})

	DescribeTable("gives the manager its scope in",
		func(ctx SpecContext, overlay, scope string) {
			manager := found[appsv1.Deployment](built(ctx, folder(overlay)), "Deployment", "stowage-manager")
			Expect(manager.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--scope=" + scope))
		},
		Entry("default", "default", "classes"),
		Entry("standalone", "standalone", "cluster"),
	)

	DescribeTable("starts programs with flags that they have:",
		func(ctx SpecContext, program, image string) {
			for _, container := range containers(built(ctx, folder("standalone"))) {
				if strings.Contains(container.Image, image) {
					expectFlags(ctx, program, container)
					return
				}
			}
			Fail("nothing runs the image " + image)
		},
		Entry("the manager", "manager", "stowage-manager"),
		Entry("the node agent", "node-agent", "stowage-node-agent"),
	)

	It("gives the kubelets' group no rights beside kubelets", func(ctx SpecContext) {
		Expect(built(ctx, folder("default"))).NotTo(ContainElement(HaveField("GetName()", "stowage-pod-source")))
	})

	It("marks all but the CRDs, whose removal takes volumes with it, as what can be removed", func(ctx SpecContext) {
		for _, object := range built(ctx, folder("standalone")) {
			marked := HaveKeyWithValue("app.kubernetes.io/name", "stowage")
			if object.GetKind() == "CustomResourceDefinition" {
				marked = Not(marked)
			}
			Expect(object.GetLabels()).To(marked, object.GetName())
		}
	})

	It("names the program of every object that belongs to one", func(ctx SpecContext) {
		ofBoth := []string{"Namespace", "CustomResourceDefinition", "CSIDriver"}
		for _, object := range built(ctx, folder("standalone")) {
			if slices.Contains(ofBoth, object.GetKind()) || object.GetName() == "stowage-metrics-reader" {
				continue
			}
			program := "node-agent"
			if strings.HasPrefix(object.GetName(), "stowage-manager") {
				program = "manager"
			}
			Expect(object.GetLabels()).To(HaveKeyWithValue("app.kubernetes.io/component", program), object.GetKind()+" "+object.GetName())
		}
	})

	It("runs the manager without privileges", func(ctx SpecContext) {
		pod := found[appsv1.Deployment](built(ctx, folder("default")), "Deployment", "stowage-manager").Spec.Template.Spec
		expectConfined(pod)
		Expect(pod.Volumes).To(BeEmpty())
		Expect(*pod.SecurityContext.RunAsNonRoot).To(BeTrue())
	})

	It("lets the node agent mount where the host and the pods see it", func(ctx SpecContext) {
		pod := found[appsv1.DaemonSet](built(ctx, folder("default")), "DaemonSet", "stowage-node-agent").Spec.Template.Spec
		Expect(*pod.Containers[0].SecurityContext.Privileged).To(BeTrue())
		Expect(pod.Tolerations).To(ConsistOf(corev1.Toleration{Operator: corev1.TolerationOpExists}))
		for _, path := range []string{"/var/lib/kubelet", "/var/lib/stowage"} {
			Expect(pod.Containers[0].VolumeMounts).To(ContainElement(And(
				HaveField("MountPath", path),
				HaveField("MountPropagation", HaveValue(Equal(corev1.MountPropagationBidirectional))),
			)))
			Expect(pod.Volumes).To(ContainElement(HaveField("HostPath.Path", path)))
		}
	})

	It("shows the node agent the node's devices and what udev knows of them, and writes nothing there", func(ctx SpecContext) {
		pod := found[appsv1.DaemonSet](built(ctx, folder("default")), "DaemonSet", "stowage-node-agent").Spec.Template.Spec
		Expect(pod.Containers[0].VolumeMounts).To(ContainElements(
			HaveField("MountPath", "/dev"),
			And(HaveField("MountPath", "/run/udev"), HaveField("ReadOnly", BeTrue())),
		))
		Expect(pod.Containers[0].TerminationMessagePath).NotTo(HavePrefix("/dev/"))
	})

	It("runs the images that the Dockerfile has targets for", func(ctx SpecContext) {
		dockerfile, err := os.ReadFile(filepath.Join(apiserver.Repository(), "Dockerfile"))
		Expect(err).NotTo(HaveOccurred())
		for _, container := range containers(built(ctx, folder("default"))) {
			target, tag, _ := strings.Cut(strings.TrimPrefix(container.Image, "ghcr.io/stowage-dev/stowage-"), ":")
			Expect(string(dockerfile)).To(ContainSubstring(" AS "+target+"\n"), container.Image)
			Expect(tag).To(Equal("dev"))
		}
	})

	DescribeTable("says its version on every object and every pod, and as the tag of every image, in",
		func(ctx SpecContext, name string) {
			for _, object := range built(ctx, folder(name)) {
				Expect(object.GetLabels()).To(HaveKeyWithValue(versionLabel, "dev"), object.GetName())
				if template, found, _ := unstructured.NestedMap(object.Object, "spec", "template", "metadata", "labels"); found {
					Expect(template).To(HaveKeyWithValue(versionLabel, "dev"), object.GetName())
				}
			}
		},
		Entry("what runs beside kube-controller-manager", "default"),
		Entry("what runs instead of its volume controllers", "standalone"),
		Entry("what `make run` applies", "run"),
		Entry("the cloud to try", "gce-mock"),
	)

	It("moves the local base everywhere at once", func(ctx SpecContext) {
		objects := built(ctx, overlayWith(GinkgoT().TempDir(), "local-base"))
		agent := found[appsv1.DaemonSet](objects, "DaemonSet", "stowage-node-agent").Spec.Template.Spec
		manager := found[appsv1.Deployment](objects, "Deployment", "stowage-manager").Spec.Template.Spec

		base := corev1.EnvVar{Name: "LOCAL_BASE", Value: "/mnt/disks"}
		Expect(manager.Containers[0].Env).To(ContainElement(base))
		Expect(agent.Containers[0].Env).To(ContainElement(base))
		Expect(agent.Containers[0].VolumeMounts).To(ContainElement(HaveField("MountPath", base.Value)))
		Expect(agent.Volumes).To(ContainElement(HaveField("HostPath.Path", base.Value)))
	})

	It("lets agents empty directories of one folder, which they see as it is on the node", func(ctx SpecContext) {
		objects := built(ctx, overlayWith(GinkgoT().TempDir(), "recycle-root"))
		agent := found[appsv1.DaemonSet](objects, "DaemonSet", "stowage-node-agent").Spec.Template.Spec

		const root = "/srv/recycled"
		Expect(agent.Containers[0].Args).To(ContainElement("--recycle-root=$(RECYCLE_ROOT)"))
		Expect(agent.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "RECYCLE_ROOT", Value: root}))
		Expect(agent.Containers[0].VolumeMounts).To(ContainElement(And(HaveField("Name", "recycle-root"), HaveField("MountPath", root))))
		Expect(agent.Volumes).To(ContainElement(HaveField("HostPath.Path", root)))
		apply(ctx, objects)
	})

	Describe("with a share mounted into the manager's pod", func() {
		var objects []*unstructured.Unstructured
		var manager corev1.PodSpec

		BeforeEach(func(ctx SpecContext) {
			objects = built(ctx, overlayWith(GinkgoT().TempDir(), "nfs-mount"))
			manager = found[appsv1.Deployment](objects, "Deployment", "stowage-manager").Spec.Template.Spec
		})

		It("is accepted by an API server, whole", func(ctx SpecContext) { apply(ctx, objects) })

		It("mounts the share of the sample where the manager looks for it", func(ctx SpecContext) {
			sample := found[stowagev1alpha1.StorageBackend](built(ctx, folder("samples")), "StorageBackend", "shared")
			Expect(manager.Volumes).To(ConsistOf(HaveField("NFS", Equal(&corev1.NFSVolumeSource{
				Server: sample.Spec.NFS.Server, Path: string(sample.Spec.NFS.Path),
			}))))
			container := manager.Containers[0]
			Expect(container.VolumeMounts).To(ConsistOf(corev1.VolumeMount{
				Name: manager.Volumes[0].Name, MountPath: "/mnt/nfs/" + sample.Name,
			}))
			Expect(container.Args).To(ContainElements("--scope=classes", "--nfs-mounts=/mnt/nfs"))
			expectFlags(ctx, "manager", container)
		})

		It("gives the manager root's uid, and nothing else of root's", func() {
			Expect(manager.SecurityContext.RunAsUser).To(HaveValue(BeZero()))
			expectConfined(manager)
		})
	})

	DescribeTable("settles for ever whether volumes are attached, and how long they may live, of",
		func(ctx SpecContext, name string, attach bool, modes ...storagev1.VolumeLifecycleMode) {
			apply(ctx, built(ctx, folder("csidrivers")))
			driver := &storagev1.CSIDriver{}
			Expect(admin.Get(ctx, client.ObjectKey{Name: name}, driver)).To(Succeed())
			Expect(driver.Spec.AttachRequired).To(HaveValue(Equal(attach)))
			Expect(driver.Spec.VolumeLifecycleModes).To(ConsistOf(modes))
		},
		Entry("nfs", stowagev1alpha1.NFSDriver, false, storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral),
		Entry("local", stowagev1alpha1.LocalDriver, false, storagev1.VolumeLifecyclePersistent),
		Entry("gce", stowagev1alpha1.GCEDriver, true, storagev1.VolumeLifecyclePersistent),
	)
})

// versionLabel is Kubernetes' own for the version of an application.
const versionLabel = "app.kubernetes.io/version"

// expectConfined makes sure that a pod, as any user, can do nothing to its node.
func expectConfined(pod corev1.PodSpec) {
	GinkgoHelper()
	Expect(pod.HostNetwork || pod.HostPID || pod.HostIPC).To(BeFalse())
	Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
	container := pod.Containers[0].SecurityContext
	Expect(*container.ReadOnlyRootFilesystem).To(BeTrue())
	Expect(*container.AllowPrivilegeEscalation).To(BeFalse())
	Expect(container.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
}

// expectFlags has a program look at a container's arguments.
func expectFlags(ctx context.Context, program string, container corev1.Container) {
	GinkgoHelper()
	help := exec.CommandContext(ctx, "go", append(append([]string{"run", "./cmd/" + program}, container.Args...), "--help")...)
	help.Dir = apiserver.Repository()
	text, err := help.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(text))
}

// containers are those of the manager and of the node agent.
func containers(objects []*unstructured.Unstructured) []corev1.Container {
	GinkgoHelper()
	manager := found[appsv1.Deployment](objects, "Deployment", "stowage-manager").Spec.Template.Spec
	agent := found[appsv1.DaemonSet](objects, "DaemonSet", "stowage-node-agent").Spec.Template.Spec
	return slices.Concat(manager.Containers, agent.Containers)
}

// overlayWith writes an overlay as the component's comment describes: a
// copy of the component beside a list that names it.
func overlayWith(parent, component string) string {
	GinkgoHelper()
	Expect(os.CopyFS(filepath.Join(parent, component), os.DirFS(folder("components", component)))).To(Succeed())
	base, err := filepath.Rel(parent, folder("default"))
	Expect(err).NotTo(HaveOccurred())
	list := "resources: [" + base + "]\ncomponents: [" + component + "]\n"
	Expect(os.WriteFile(filepath.Join(parent, "kustomization.yaml"), []byte(list), 0o600)).To(Succeed())
	return parent
}
