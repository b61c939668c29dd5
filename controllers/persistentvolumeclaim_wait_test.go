package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/stowage-dev/stowage/internal/bindable"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = DescribeTable("A claim reports what its deleted volume object is",
	func(name string, change func(*corev1.PersistentVolume), says string) {
		claim := Claim(ClaimUID("1"))
		pv := Volume(name)
		change(pv)

		_, message := bindable.OldVolume(pv, claim)
		Expect(message).To(ContainSubstring(says))
	},
	Entry("where it was made for the claim", "pvc-1", func(pv *corev1.PersistentVolume) {
		pv.Annotations = map[string]string{volume.AnnDynamicallyProvisioned: "local.stowage.dev"}
	}, "which was made for this claim"),
	Entry("where a person reserved it for the claim", "disk", func(pv *corev1.PersistentVolume) {
		ReservedTo("data")(pv)
		pv.Spec.ClaimRef.UID = "1"
	}, "which is reserved for this claim"),
	Entry("where it only has the name of the claim's volume", "pvc-1", func(*corev1.PersistentVolume) {},
		"has the name of the volume that is made for this claim, and isn't that"),
)
