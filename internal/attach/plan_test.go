package attach_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/attach"
)

// says writes a plan down: "UnmarkAttached a", "Wait a InUse".
func says(steps []attach.Step) []string {
	said := []string{}
	for _, step := range steps {
		text := fmt.Sprintf("%s %s", step.Action, step.Volume)
		if step.Cause != "" {
			text += " " + string(step.Cause)
		}
		if step.Action == attach.Delete && !step.Unmarked {
			text += " unless marked"
		}
		if step.Forced {
			text += " by force"
		}
		said = append(said, text)
	}
	return said
}

func TestPlan(t *testing.T) {
	a := disk("a")
	shared, login := disk("shared"), attach.Volume{Name: "kubernetes.io/iscsi/portal:iqn:0", SingleNode: true}
	shared.SingleNode = false
	flex := attach.Volume{Name: "example.com/lvm/flexed"}
	elsewhere := attachmentOn("node-2", a, madeAt(ago(time.Hour)))
	holders := func(holder attach.OtherNode) map[corev1.UniqueVolumeName][]attach.OtherNode {
		return map[corev1.UniqueVolumeName][]attach.OtherNode{a.Name: {holder}, login.Name: {holder}}
	}
	unknown := attach.Attachment{Object: attachmentOn(here, a), Volume: attach.Volume{Driver: a.Driver, Source: a.Source}}
	wantsA, hasA := []attach.Volume{a}, []attach.Attachment{attachment(a)}
	reported := reporting(a.Name)

	for _, story := range []struct {
		name string
		view attach.View
		want []string
	}{
		// What pods want.
		{"a wanted volume is asked for", attach.View{Node: managed(), Desired: wantsA}, []string{"Create a"}},
		{"an unmanaged node sees to itself", attach.View{Node: managed(func(node *corev1.Node) { node.Annotations = nil }), Desired: wantsA}, nil},
		{"so does one that says so", attach.View{Node: managed(func(node *corev1.Node) { node.Annotations[attach.ManagedAnnotation] = "false" }), Desired: wantsA, Attachments: hasA}, nil},
		{"nothing is attached to a node that isn't there", attach.View{Desired: wantsA}, nil},
		{"a cordoned node is like any other", attach.View{Node: managed(func(node *corev1.Node) { node.Spec.Unschedulable = true }), Desired: wantsA}, []string{"Create a"}},
		{"a node that isn't Ready may come back", attach.View{Node: managed(notReady), Desired: wantsA}, []string{"Create a"}},
		{"a node that is off gets nothing", attach.View{Node: managed(notReady, outOfService), Desired: wantsA}, []string{"Wait a NodeOff"}},
		{"the taint is nothing to a Ready node", attach.View{Node: managed(outOfService), Desired: wantsA}, []string{"Create a"}},
		{
			"a volume that is being attached is waited for",
			attach.View{Node: managed(), Desired: wantsA, Attachments: []attach.Attachment{attachment(a, notAttached)}},
			[]string{},
		},
		{"the node is told of what is attached", attach.View{Node: managed(), Desired: wantsA, Attachments: hasA}, []string{"MarkAttached a"}},
		{"and told once", attach.View{Node: managed(reported), Desired: wantsA, Attachments: hasA}, []string{}},
		{
			"what isn't attached any more is withdrawn",
			attach.View{Node: managed(reported), Desired: wantsA, Attachments: []attach.Attachment{attachment(a, notAttached)}},
			[]string{"UnmarkAttached a"},
		},
		{
			"unless the node uses it",
			attach.View{Node: managed(reported, using(a)), Desired: wantsA, Attachments: []attach.Attachment{attachment(a, notAttached)}},
			[]string{},
		},
		{
			"a pod that came back waits until the volume has left",
			attach.View{Node: managed(), Desired: wantsA, Attachments: []attach.Attachment{attachment(a, deleting)}},
			[]string{"Wait a Detaching"},
		},
		{
			"and doesn't start on what is about to leave",
			attach.View{Node: managed(reported), Desired: wantsA, Attachments: []attach.Attachment{attachment(a, deleting)}},
			[]string{"UnmarkAttached a", "Wait a Detaching"},
		},
		{
			"an attachment that somebody removed is made again",
			attach.View{Node: managed(reported, using(a)), Desired: wantsA},
			[]string{"Create a"},
		},
		{
			"an attachment of the right name will do, whoever made it",
			attach.View{Node: managed(), Desired: wantsA, Attachments: []attach.Attachment{{Object: attachmentOn(here, a), Foreign: true}}},
			[]string{"MarkAttached a"},
		},

		// One node at a time.
		{
			"a volume that another node has is waited for",
			attach.View{Node: managed(), Desired: wantsA, OtherNodes: holders(attach.OtherNode{Node: "node-2", Attachment: elsewhere})},
			[]string{"Wait a AttachedElsewhere"},
		},
		{
			"so is one that another node was only told of",
			attach.View{Node: managed(), Desired: wantsA, OtherNodes: holders(attach.OtherNode{Node: "node-2"})},
			[]string{"Wait a AttachedElsewhere"},
		},
		{
			"who asked later gives way",
			attach.View{Node: managed(), Desired: wantsA, Attachments: []attach.Attachment{attachment(a, notAttached)}, OtherNodes: holders(attach.OtherNode{Node: "node-2", Attachment: elsewhere})},
			[]string{"Delete a unless marked"},
		},
		{
			"and withdraws what it told before",
			attach.View{Node: managed(reported), Desired: wantsA, Attachments: []attach.Attachment{attachment(a, notAttached)}, OtherNodes: holders(attach.OtherNode{Node: "node-2", Attachment: elsewhere})},
			[]string{"UnmarkAttached a", "Delete a"},
		},
		{
			"who asked first doesn't",
			attach.View{Node: managed(), Desired: wantsA, Attachments: []attach.Attachment{attachment(a, notAttached)}, OtherNodes: holders(attach.OtherNode{Node: "node-2", Attachment: attachmentOn("node-2", a, madeAt(now))})},
			[]string{},
		},
		{
			"nor does who has it already",
			attach.View{Node: managed(), Desired: wantsA, Attachments: hasA, OtherNodes: holders(attach.OtherNode{Node: "node-2", Attachment: elsewhere})},
			[]string{"MarkAttached a"},
		},
		{"what many may have, many get", attach.View{Node: managed(), Desired: []attach.Volume{shared}}, []string{"Create shared"}},

		// What the node itself logs in to.
		{"what needs no driver is only told", attach.View{Node: managed(), Desired: []attach.Volume{login}}, []string{"MarkAttached kubernetes.io/iscsi/portal:iqn:0"}},
		{"and told once, too", attach.View{Node: managed(reporting(login.Name)), Desired: []attach.Volume{login}}, []string{}},
		{
			"and not while another node has it",
			attach.View{Node: managed(), Desired: []attach.Volume{login}, OtherNodes: holders(attach.OtherNode{Node: "node-2"})},
			[]string{"Wait kubernetes.io/iscsi/portal:iqn:0 AttachedElsewhere"},
		},
		{"and withdrawn in the end", attach.View{Node: managed(reporting(login.Name))}, []string{"UnmarkAttached kubernetes.io/iscsi/portal:iqn:0"}},
		{"but not while in use", attach.View{Node: managed(reporting(login.Name), using(login))}, []string{"Wait kubernetes.io/iscsi/portal:iqn:0 InUse"}},
		{"a flex volume that is known is withdrawn", attach.View{Node: managed(reporting(flex.Name)), Known: []attach.Volume{flex}}, []string{"UnmarkAttached example.com/lvm/flexed"}},
		{"what nobody understands stays", attach.View{Node: managed(reporting(flex.Name, "kubernetes.io/gce-pd/old", "else"))}, []string{}},

		// What no pod wants any more.
		{"a volume that nobody wants leaves in two steps", attach.View{Node: managed(reported), Attachments: hasA}, []string{"UnmarkAttached a", "Delete a"}},
		{"the second is done where the first is", attach.View{Node: managed(), Attachments: hasA}, []string{"Delete a unless marked"}},
		{"what is in use stays", attach.View{Node: managed(reported, using(a)), Attachments: hasA}, []string{"Wait a InUse"}},
		{"even where the node wasn't told of it", attach.View{Node: managed(using(a)), Attachments: hasA}, []string{"Wait a InUse"}},
		{"and where the node isn't Ready", attach.View{Node: managed(notReady, reported, using(a)), Attachments: hasA}, []string{"Wait a InUse"}},
		{"what leaves already is withdrawn", attach.View{Node: managed(reported), Attachments: []attach.Attachment{attachment(a, deleting)}}, []string{"UnmarkAttached a"}},
		{"unless it is in use", attach.View{Node: managed(reported, using(a)), Attachments: []attach.Attachment{attachment(a, deleting)}}, []string{}},
		{"a node that is gone can't say what it uses", attach.View{Attachments: hasA}, []string{"Wait a NodeGone"}},
		{"what leaves a node that is gone, leaves", attach.View{Attachments: []attach.Attachment{attachment(a, deleting)}}, []string{}},
		{
			"a node that came back may not have said yet what it uses",
			attach.View{Node: managed(func(node *corev1.Node) { node.CreationTimestamp = metav1.NewTime(ago(20 * time.Second)) }), Attachments: hasA},
			[]string{"Wait a Settling"},
		},
		{
			"later it has",
			attach.View{Node: managed(func(node *corev1.Node) { node.CreationTimestamp = metav1.NewTime(ago(2 * time.Minute)) }), Attachments: []attach.Attachment{attachment(a, madeAt(ago(time.Hour)))}},
			[]string{"Delete a unless marked"},
		},
		{"the attachment of a volume that is gone is removed", attach.View{Node: managed(), Attachments: []attach.Attachment{unknown}}, []string{"Delete a unless marked"}},
		{"one that others made is left alone", attach.View{Node: managed(), Attachments: []attach.Attachment{{Object: attachmentOn(here, a), Foreign: true}}}, []string{}},
		{"a report without attachment is withdrawn", attach.View{Node: managed(reported)}, []string{"UnmarkAttached handle-of-a"}},
		{"unless the node uses it still", attach.View{Node: managed(reported, using(a))}, []string{"Wait handle-of-a InUse"}},
	} {
		t.Run(story.name, func(t *testing.T) {
			story.view.Name, story.view.Now = here, now
			if got := says(attach.Plan(story.view)); !slices.Equal(got, story.want) {
				t.Errorf("the plan is %q, not %q", got, story.want)
			}
		})
	}
}

func TestWhatForceDoes(t *testing.T) {
	a := disk("a")
	wait := func(node *corev1.Node, attachments ...attach.Attachment) attach.Step {
		steps := attach.Plan(attach.View{Name: here, Node: node, Attachments: attachments, Now: now})
		if len(steps) != 1 || !steps[0].Forcible() {
			t.Fatalf("there is nothing to force in %q", says(steps))
		}
		return steps[0]
	}
	for _, story := range []struct {
		name string
		node *corev1.Node
		has  []attach.Attachment
		want []string
	}{
		{"withdraws first", managed(reporting(a.Name), using(a)), []attach.Attachment{attachment(a)}, []string{"UnmarkAttached a by force", "Delete a by force"}},
		{"deletes what wasn't told", managed(using(a)), []attach.Attachment{attachment(a)}, []string{"Delete a unless marked by force"}},
		{"has nobody to tell where there is no node", nil, []attach.Attachment{attachment(a)}, []string{"Delete a unless marked by force"}},
		{"withdraws what has no attachment", managed(reporting(a.Name), using(a)), nil, []string{"UnmarkAttached handle-of-a by force"}},
	} {
		t.Run(story.name, func(t *testing.T) {
			if got := says(wait(story.node, story.has...).ByForce(story.node)); !slices.Equal(got, story.want) {
				t.Errorf("force does %q, not %q", got, story.want)
			}
		})
	}
}

func TestOnlyWhatANodeHoldsCanBeForced(t *testing.T) {
	for cause, forcible := range map[attach.Cause]bool{
		attach.InUse: true, attach.NodeGone: true, attach.Settling: true,
		attach.AttachedElsewhere: false, attach.Detaching: false, attach.NodeOff: false,
	} {
		if got := (attach.Step{Action: attach.Wait, Cause: cause}).Forcible(); got != forcible {
			t.Errorf("%s is forcible: %v", cause, got)
		}
	}
}

func TestReportedKeepsOrderAndStrangers(t *testing.T) {
	a, b, c := disk("a"), disk("b"), disk("c")
	node := managed(reporting("else", a.Name, "more", b.Name))
	got, changed := attach.VolumesAttached(node, []attach.Step{{Action: attach.UnmarkAttached, Volume: a}, {Action: attach.MarkAttached, Volume: c}, {Action: attach.Wait, Volume: b}})

	var names []corev1.UniqueVolumeName
	for _, attached := range got {
		names = append(names, attached.Name)
	}
	if want := []corev1.UniqueVolumeName{"else", "more", b.Name, c.Name}; !changed || !slices.Equal(names, want) {
		t.Errorf("the node is told %q, not %q", names, want)
	}
	if _, changed := attach.VolumesAttached(node, []attach.Step{{Action: attach.Wait, Volume: a}, {Action: attach.UnmarkAttached, Volume: c}}); changed {
		t.Error("nothing changed, and it says so")
	}
}

func TestOlder(t *testing.T) {
	a := disk("a")
	first, second := attachmentOn("node-1", a, madeAt(ago(time.Hour))), attachmentOn("node-2", a)
	twin := func(name string) *storagev1.VolumeAttachment {
		object := attachmentOn(here, a)
		object.Name = name
		return object
	}
	if attach.Older(first, second) >= 0 || attach.Older(second, first) <= 0 {
		t.Error("who was made first is older")
	}
	if attach.Older(twin("a"), twin("b")) >= 0 || attach.Older(twin("a"), twin("a")) != 0 {
		t.Error("of those made at once, the name decides")
	}
}
