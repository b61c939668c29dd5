package expansion

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/bindable"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	resizing       = corev1.PersistentVolumeClaimControllerResizeInProgress
	infeasible     = corev1.PersistentVolumeClaimControllerResizeInfeasible
	pendingOnNode  = corev1.PersistentVolumeClaimNodeResizePending
	busyOnNode     = corev1.PersistentVolumeClaimNodeResizeInProgress
	hopelessOnNode = corev1.PersistentVolumeClaimNodeResizeInfeasible
)

func TestTheSizeThatAClaimGetsNext(t *testing.T) {
	for name, test := range map[string]struct {
		asks, has, tried, volume string
		status                   corev1.ClaimResourceStatus
		failed                   string
		want                     string
	}{
		"nothing is asked for":                       {asks: "1Gi", has: "1Gi", volume: "1Gi"},
		"less is asked for":                          {asks: "1Gi", has: "2Gi", volume: "2Gi"},
		"the same, in other words":                   {asks: "1024Mi", has: "1Gi", volume: "1Gi"},
		"more is asked for":                          {asks: "2Gi", has: "1Gi", volume: "1Gi", want: "2Gi"},
		"what it grew to before is over":             {asks: "3Gi", has: "2Gi", tried: "2Gi", volume: "2Gi", want: "3Gi"},
		"the outcome of another size is open":        {asks: "2Gi", has: "1Gi", tried: "9Gi", volume: "1Gi", status: resizing, want: "9Gi"},
		"its outcome is open after an error":         {asks: "2Gi", has: "1Gi", tried: "9Gi", volume: "1Gi", status: resizing, failed: "Unknown", want: "9Gi"},
		"and after one of storage that took none":    {asks: "2Gi", has: "1Gi", tried: "9Gi", volume: "1Gi", status: resizing, failed: "Unavailable", want: "9Gi"},
		"there was no room for another size":         {asks: "2Gi", has: "1Gi", tried: "9Gi", volume: "1Gi", status: resizing, failed: "Exhausted", want: "2Gi"},
		"the volume has another size already":        {asks: "2Gi", has: "1Gi", tried: "9Gi", volume: "9Gi", status: resizing, failed: "Exhausted", want: "9Gi"},
		"the size is infeasible":                     {asks: "9Gi", has: "1Gi", tried: "9Gi", volume: "1Gi", status: infeasible},
		"another size was infeasible":                {asks: "2Gi", has: "1Gi", tried: "9Gi", volume: "1Gi", status: infeasible, want: "2Gi"},
		"a node has yet to begin":                    {asks: "2Gi", has: "1Gi", tried: "2Gi", volume: "2Gi", status: pendingOnNode},
		"a node has yet to begin, and more is asked": {asks: "9Gi", has: "1Gi", tried: "2Gi", volume: "2Gi", status: pendingOnNode},
		"a node is at it":                            {asks: "9Gi", has: "1Gi", tried: "2Gi", volume: "2Gi", status: busyOnNode},
		"a node can't":                               {asks: "2Gi", has: "1Gi", tried: "2Gi", volume: "2Gi", status: hopelessOnNode},
		"a node can't, and more is asked for":        {asks: "3Gi", has: "1Gi", tried: "2Gi", volume: "2Gi", status: hopelessOnNode, want: "3Gi"},
		"a node can't, and less is asked for":        {asks: "1500Mi", has: "1Gi", tried: "2Gi", volume: "2Gi", status: hopelessOnNode, want: "2Gi"},
		"the volume has it, and no status says so":   {asks: "2Gi", has: "1Gi", volume: "2Gi", want: "2Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := Claim(Asking(test.asks))
			claim.Status.Phase = corev1.ClaimBound
			claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(test.has)}
			if test.tried != "" {
				setStorage(&claim.Status.AllocatedResources, resource.MustParse(test.tried))
			}
			setStorage(&claim.Status.AllocatedResourceStatuses, test.status)
			if test.failed != "" {
				bindable.SetCondition(claim, corev1.PersistentVolumeClaimCondition{
					Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, Reason: test.failed,
				})
			}
			got := ""
			if RequestsMore(claim) && mayExpand(claim) {
				goal := goalOf(claim, Volume("v", Holding(test.volume)))
				got = goal.String()
			}
			if got != test.want {
				t.Errorf("it gets %q, not %q", got, test.want)
			}
		})
	}
}

func TestAClaimThatIsNotBoundDoesNotGrow(t *testing.T) {
	claim := Claim(Asking("2Gi"))
	if RequestsMore(claim) {
		t.Error("it has nothing yet")
	}
}
