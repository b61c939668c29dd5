package config_test

import (
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// What `make e2e` installs proves what users install only as far as it is the same.
var _ = DescribeTable("what a testbed installs has images and disks of its own, and is otherwise",
	func(ctx SpecContext, overlay string) {
		theirs := built(ctx, folder(overlay))
		ours := built(ctx, filepath.Join(apiserver.Repository(), "test", "e2e", "manifests", overlay))
		for _, container := range containers(ours) {
			Expect(container.Image).To(MatchRegexp(`^localhost/stowage-[-a-z]+:e2e$`))
			Expect(container.ImagePullPolicy).To(Equal(corev1.PullIfNotPresent))
		}
		apply(ctx, ours)
		Expect(described(ours, withoutTestbed)).To(Equal(described(theirs, withoutImage)))
	},
	Entry("config/default", "default"),
	Entry("config/standalone", "standalone"),
)

// described are all objects, by name, with the pods' templates as they are changed.
func described(objects []*unstructured.Unstructured, change func(*corev1.PodSpec)) map[string]any {
	GinkgoHelper()
	all := map[string]any{}
	for _, object := range objects {
		name := object.GetKind() + " " + object.GetName()
		switch object.GetKind() {
		case "Deployment":
			manager := found[appsv1.Deployment](objects, "Deployment", object.GetName())
			change(&manager.Spec.Template.Spec)
			all[name] = manager
		case "DaemonSet":
			agent := found[appsv1.DaemonSet](objects, "DaemonSet", object.GetName())
			change(&agent.Spec.Template.Spec)
			all[name] = agent
		default:
			all[name] = object
		}
	}
	return all
}

func withoutImage(pod *corev1.PodSpec) {
	for i := range pod.Containers {
		pod.Containers[i].Image = ""
	}
}

func withoutTestbed(pod *corev1.PodSpec) {
	withoutImage(pod)
	const cloud = "cloud"
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(volume corev1.Volume) bool { return volume.Name == cloud })
	for i := range pod.Containers {
		container := &pod.Containers[i]
		container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, func(mount corev1.VolumeMount) bool { return mount.Name == cloud })
		container.Args = slices.DeleteFunc(container.Args, func(argument string) bool { return strings.HasPrefix(argument, "--device-dir=") })
	}
}
