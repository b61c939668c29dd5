package controllers

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// janitor is the agent of every node, as far as it empties directories, which it has in
// memory.
type janitor struct {
	w     *world
	files map[string]string
	// problem is why it can't, "" for nothing.
	problem string
	asked   int
}

// settle has the agent and the reconcilers take turns until neither does anything.
func (j *janitor) settle() {
	GinkgoHelper()
	for range maxRounds {
		j.w.settle()
		if !j.act() {
			return
		}
	}
	Fail("the agent and the manager did not come to rest")
}

// act does what there is to do, and tells whether there was.
func (j *janitor) act() bool {
	GinkgoHelper()
	acted := false
	for _, object := range j.w.all(&stowagev1alpha1.NodeRecyclingList{}) {
		recycling := object.(*stowagev1alpha1.NodeRecycling)
		before := recycling.DeepCopy()
		j.serve(recycling)
		if !isSaid(before, recycling) {
			acted = true
			Expect(j.w.direct.Status().Patch(context.Background(), recycling, client.MergeFrom(before))).To(Succeed())
		}
	}
	return acted
}

func isSaid(before, after *stowagev1alpha1.NodeRecycling) bool {
	find := func(of *stowagev1alpha1.NodeRecycling) metav1.Condition {
		if found := meta.FindStatusCondition(of.Status.Conditions, stowagev1alpha1.EmptiedCondition); found != nil {
			return *found
		}
		return metav1.Condition{}
	}
	return before.Status.Asking == after.Status.Asking && find(before).Reason == find(after).Reason
}

func (j *janitor) serve(recycling *stowagev1alpha1.NodeRecycling) {
	emptied := metav1.Condition{Type: stowagev1alpha1.EmptiedCondition, Status: metav1.ConditionFalse, Reason: stowagev1alpha1.ReasonPending}
	switch {
	case meta.IsStatusConditionTrue(recycling.Status.Conditions, stowagev1alpha1.EmptiedCondition):
		return
	case j.problem != "":
		recycling.Status.Asking, emptied.Reason, emptied.Message = "", j.problem, "as told by the agent"
	case recycling.Status.Asking == "":
		j.asked++
		recycling.Status.Asking = fmt.Sprint("question-", j.asked)
	case recycling.Status.Asking == recycling.Spec.Approved:
		delete(j.files, string(recycling.Spec.Path))
		emptied.Status, emptied.Reason = metav1.ConditionTrue, stowagev1alpha1.ReasonReady
	}
	meta.SetStatusCondition(&recycling.Status.Conditions, emptied)
}
