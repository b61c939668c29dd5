package binder_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/binder"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestFitNamesTheFirstCauseForWhichAVolumeIsNotGiven(t *testing.T) {
	deleted := func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = ptr.To(metav1.Now()) }
	failed := func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeFailed }
	silver := func(pv *corev1.PersistentVolume) { pv.Spec.VolumeAttributesClassName = ptr.To("silver") }

	for name, test := range map[string]struct {
		volume *corev1.PersistentVolume
		claim  *corev1.PersistentVolumeClaim
		node   string
		want   binder.Cause
	}{
		"equal in everything":           {Volume("v"), Claim(), "", binder.Fits},
		"larger":                        {Volume("v", Holding("5Gi")), Claim(), "", binder.Fits},
		"smaller":                       {Volume("v"), Claim(Asking("2Gi")), "", binder.TooSmall},
		"a size beyond counting":        {Volume("v"), Claim(Asking("10E")), "", binder.TooSmall},
		"too small, beyond counting":    {Volume("v", Holding("200E")), Claim(Asking("900E")), "", binder.TooSmall},
		"more access modes":             {Volume("v", WithModes(corev1.ReadOnlyMany, corev1.ReadWriteOnce)), Claim(), "", binder.Fits},
		"another access mode":           {Volume("v"), Claim(AskingModes(corev1.ReadWriteMany)), "", binder.OtherAccessModes},
		"filesystem for a block claim":  {Volume("v"), Claim(AskingBlock()), "", binder.OtherVolumeMode},
		"another class":                 {Volume("v", OfClass("fast")), Claim(), "", binder.OtherClass},
		"the same class":                {Volume("v", OfClass("fast")), Claim(InClass("fast")), "", binder.Fits},
		"selected":                      {Volume("v", Labelled("disk", "ssd")), Claim(Selecting("disk", "ssd")), "", binder.Fits},
		"not selected":                  {Volume("v", Labelled("disk", "hdd")), Claim(Selecting("disk", "ssd")), "", binder.OtherLabels},
		"another volumeAttributesClass": {Volume("v", silver), Claim(), "", binder.OtherAttributesClass},
		"on the pod's node":             {Volume("v", OnNode("n1")), Claim(), "n1", binder.Fits},
		"on another node":               {Volume("v", OnNode("n2")), Claim(), "n1", binder.OtherNode},
		"being deleted":                 {Volume("v", deleted), Claim(), "", binder.Deleting},
		"failed":                        {Volume("v", failed), Claim(), "", binder.Failed},
		"reserved for another claim":    {Volume("v", ReservedTo("other")), Claim(), "", binder.Reserved},
		"reserved for the claim":        {Volume("v", ReservedTo("data")), Claim(), "", binder.Fits},
		"reserved, of another class":    {Volume("v", ReservedTo("data"), OfClass("fast")), Claim(), "", binder.Fits},
		"reserved, not selected":        {Volume("v", ReservedTo("data")), Claim(Selecting("disk", "ssd")), "", binder.Fits},
		"reserved, too small":           {Volume("v", ReservedTo("data")), Claim(Asking("2Gi")), "", binder.TooSmall},
		"reserved for an earlier claim of that name": {
			Volume("v", ReservedTo("data"), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "old" }),
			Claim(ClaimUID("new")), "", binder.Reserved,
		},
	} {
		t.Run(name, func(t *testing.T) {
			request := binder.ClaimRequest{Claim: test.claim}
			if test.node != "" {
				request.Node = Node(test.node)
			}
			if got := binder.Fit(test.volume, request); got != test.want {
				t.Errorf("the cause is %q, not %q", got, test.want)
			}
		})
	}
}
