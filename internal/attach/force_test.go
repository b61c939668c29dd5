package attach_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/backend"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func TestWhenAVolumeMayBeTakenFromANode(t *testing.T) {
	sixMinutes, never := attach.Policy{After: 6 * time.Minute}, attach.Policy{Never: true}
	foreign := attach.Policy{After: 6 * time.Minute, MissingCounts: true}
	const soon = 30 * time.Second
	for _, test := range []struct {
		name    string
		node    attach.NodeCondition
		policy  attach.Policy
		allowed bool
		reason  string
		after   time.Duration
	}{
		{
			"a Ready node is never forced",
			attach.NodeCondition{Exists: true, Ready: true},
			sixMinutes, false, "is Ready", 0,
		},
		{
			"a Ready node is not forced by the taint",
			attach.NodeCondition{Exists: true, Ready: true, OutOfService: true},
			sixMinutes, false, "is Ready", 0,
		},
		{
			"a Ready node is not forced by what the cloud says: one of the two is behind",
			attach.NodeCondition{Exists: true, Ready: true, Machine: backend.MachineGone},
			sixMinutes, false, "is Ready", 0,
		},
		{
			"a Ready node that was not long ago is not forced",
			attach.NodeCondition{Exists: true, Ready: true, Since: ago(time.Hour)},
			sixMinutes, false, "is Ready", 0,
		},
		{
			"not Ready for less than the policy waits for the rest",
			attach.NodeCondition{Exists: true, Since: ago(5*time.Minute + 50*time.Second)},
			sixMinutes, false, "forced after 6m", 10 * time.Second,
		},
		{
			"not Ready for much less asks the cloud again until then",
			attach.NodeCondition{Exists: true, Since: ago(time.Minute)},
			sixMinutes, false, "forced after 6m", soon,
		},
		{
			"not Ready for as long as the policy says is forced",
			attach.NodeCondition{Exists: true, Since: ago(6 * time.Minute)},
			sixMinutes, true, "longer than 6m", 0,
		},
		{
			"not Ready since some time to come waits: a clock is ahead",
			attach.NodeCondition{Exists: true, Since: now.Add(time.Hour)},
			sixMinutes, false, "forced after 6m", soon,
		},
		{
			"not Ready since an unknown time is not forced by time",
			attach.NodeCondition{Exists: true},
			sixMinutes, false, "since when is unknown", soon,
		},
		{
			"a machine that runs is forced by time alone",
			attach.NodeCondition{Exists: true, Since: ago(time.Hour), Machine: backend.MachineRuns},
			sixMinutes, true, "longer than 6m", 0,
		},
		{
			"not Ready for an hour is not forced where the policy is Never",
			attach.NodeCondition{Exists: true, Since: ago(time.Hour)},
			never, false, "Never", soon,
		},
		{
			"the taint counts for a node that is not Ready",
			attach.NodeCondition{Exists: true, OutOfService: true, Since: ago(time.Second)},
			sixMinutes, true, "out-of-service", 0,
		},
		{
			"the taint counts where the policy is Never",
			attach.NodeCondition{Exists: true, OutOfService: true, Since: ago(time.Second)},
			never, true, "out-of-service", 0,
		},
		{
			"a stopped machine needs no time",
			attach.NodeCondition{Exists: true, Since: ago(time.Second), Machine: backend.MachineStopped},
			never, true, "stopped", 0,
		},
		{
			"a machine that is gone needs no time",
			attach.NodeCondition{Exists: true, Since: ago(time.Second), Machine: backend.MachineGone},
			sixMinutes, true, "gone", 0,
		},
		{
			"a missing Node object whose machine runs is never forced",
			attach.NodeCondition{Machine: backend.MachineRuns, MissingSince: ago(time.Hour)},
			sixMinutes, false, "no Node object", soon,
		},
		{
			"a missing Node object of which the cloud knows nothing is never forced",
			attach.NodeCondition{MissingSince: ago(time.Hour)},
			sixMinutes, false, "no Node object", soon,
		},
		{
			"a missing Node object is forced once the machine is gone",
			attach.NodeCondition{Machine: backend.MachineGone},
			sixMinutes, true, "gone", 0,
		},
		{
			"a missing Node object is forced once the machine is stopped",
			attach.NodeCondition{Machine: backend.MachineStopped},
			never, true, "stopped", 0,
		},
		{
			"a missing Node object is forced after the time where no cloud answers",
			attach.NodeCondition{MissingSince: ago(7 * time.Minute)},
			foreign, true, "gone since", 0,
		},
		{
			"a missing Node object is waited for where no cloud answers",
			attach.NodeCondition{MissingSince: ago(5 * time.Minute)},
			foreign, false, "gone since", soon,
		},
		{
			"a Node object that is missing since an unknown time is not forced where no cloud answers",
			attach.NodeCondition{},
			foreign, false, "since when is unknown", soon,
		},
		{
			"a missing Node object is not forced where no cloud answers and the policy is Never",
			attach.NodeCondition{MissingSince: ago(time.Hour)},
			attach.Policy{Never: true, MissingCounts: true},
			false, "Never", soon,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := attach.MayForce(test.node, test.policy, now)
			if got.Allowed != test.allowed || got.After != test.after || !strings.Contains(got.Reason, test.reason) {
				t.Errorf("got %+v, want allowed %t, check again after %s, and a reason with %q", got, test.allowed, test.after, test.reason)
			}
		})
	}
}

func TestConditionOf(t *testing.T) {
	made, turned := ago(time.Hour), ago(time.Minute)
	node := func(status corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)}, Spec: corev1.NodeSpec{Taints: taints}}
		if status != "" {
			node.Status.Conditions = []corev1.NodeCondition{
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue},
				{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(turned)},
			}
		}
		return node
	}
	outOfService := corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}
	for _, test := range []struct {
		name string
		node *corev1.Node
		want attach.NodeCondition
	}{
		{"none", nil, attach.NodeCondition{}},
		{"Ready", node(corev1.ConditionTrue), attach.NodeCondition{Exists: true, Ready: true, Since: turned}},
		{"not Ready", node(corev1.ConditionFalse), attach.NodeCondition{Exists: true, Since: turned}},
		{"Unknown", node(corev1.ConditionUnknown), attach.NodeCondition{Exists: true, Since: turned}},
		{"without a condition since its creation", node(""), attach.NodeCondition{Exists: true, Since: made}},
		{"out of service", node(corev1.ConditionUnknown, outOfService), attach.NodeCondition{Exists: true, Since: turned, OutOfService: true}},
		{"with another taint", node(corev1.ConditionUnknown, corev1.Taint{Key: corev1.TaintNodeUnreachable}), attach.NodeCondition{Exists: true, Since: turned}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := attach.ConditionOf(test.node); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestPolicyOf(t *testing.T) {
	for duration, want := range map[string]attach.Policy{
		"6m":              {After: 6 * time.Minute},
		"1h30m":           {After: 90 * time.Minute},
		"0s":              {},
		attach.NeverForce: {Never: true},
		"":                {Never: true},
		"soon":            {Never: true},
	} {
		if got := attach.PolicyOf(stowagev1alpha1.AttachmentPolicy{ForceDetachAfter: duration}); got != want {
			t.Errorf("%q: got %+v, want %+v", duration, got, want)
		}
	}
}

func TestIsReleased(t *testing.T) {
	const name = corev1.UniqueVolumeName("kubernetes.io/csi/gce.stowage.dev^disk")
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{
		CreationTimestamp: metav1.NewTime(ago(10 * time.Minute)), DeletionTimestamp: new(metav1.NewTime(ago(5 * time.Minute))),
	}}
	inUse := corev1.NodeStatus{VolumesInUse: []corev1.UniqueVolumeName{name}}
	isMarked := corev1.NodeStatus{VolumesAttached: []corev1.AttachedVolume{{Name: name}}}
	ready := func(status corev1.ConditionStatus, since time.Duration) corev1.NodeStatus {
		return corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(ago(since))},
		}}
	}
	for _, test := range []struct {
		name       string
		status     corev1.NodeStatus
		registered time.Duration
		released   bool
		after      time.Duration
	}{
		{"a node that uses it has not released it", inUse, time.Hour, false, 0},
		{"a node with it in volumesAttached has not", isMarked, time.Hour, false, 0},
		{"a node without it has", corev1.NodeStatus{}, time.Hour, true, 0},
		{"a Ready node that registered again has to report first", ready(corev1.ConditionTrue, 0), 10 * time.Second, false, 50 * time.Second},
		{"a node that registered again some time ago has reported", ready(corev1.ConditionTrue, 0), 2 * time.Minute, true, 0},
		{"a node that registered again and fell silent has not reported", ready(corev1.ConditionUnknown, 9*time.Minute), 9 * time.Minute, false, 0},
		{"a node that registered again, reported, and fell silent later has", ready(corev1.ConditionUnknown, time.Minute), 9 * time.Minute, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(ago(test.registered))}, Status: test.status}
			released, after := attach.IsReleased(node, name, attachment, now)
			if released != test.released || after != test.after {
				t.Errorf("released: %t, certain after %s", released, after)
			}
		})
	}
}
