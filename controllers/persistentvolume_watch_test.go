package controllers

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/stowage-dev/stowage/controllers/persistentvolume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = DescribeTable("A change of a claim wakes its volumes",
	func(change func(*corev1.PersistentVolumeClaim), wakes bool) {
		before := Claim(AskingFor("v"), ClaimUID("1"))
		before.ResourceVersion = "1"
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		change(after)

		Expect(persistentvolume.NewTies.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(wakes))
	},
	Entry("when it takes another volume", AskingFor("w"), true),
	Entry("when its binding completes", func(claim *corev1.PersistentVolumeClaim) {
		claim.Annotations = map[string]string{volume.AnnBindCompleted: "yes"}
	}, true),
	Entry("when it is being deleted", func(claim *corev1.PersistentVolumeClaim) { claim.DeletionTimestamp = new(metav1.Now()) }, true),
	Entry("when it was made anew", ClaimUID("2"), true),
	Entry("when all is looked at again", func(claim *corev1.PersistentVolumeClaim) { claim.ResourceVersion = "1" }, true),
	Entry("but not when its status changes", func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimBound }, false),
)
