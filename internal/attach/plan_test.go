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

// textOf returns a plan as text: "UnmarkAttached a", "Wait a InUse".
func textOf(steps []attach.Step) []string {
	texts := []string{}
	for _, step := range steps {
		text := fmt.Sprintf("%s %s", step.Action, step.Volume)
		if step.Cause != "" {
			text += " " + string(step.Cause)
		}
		if step.Action == attach.Delete && !step.Unmarked {
			text += " after a live read"
		}
		if step.Forced {
			text += " by force"
		}
		texts = append(texts, text)
	}
	return texts
}

func TestPlan(t *testing.T) {
	a := disk("a")
	shared, login := disk("shared"), attach.Volume{Name: "kubernetes.io/iscsi/portal:iqn:0", SingleNode: true}
	shared.SingleNode = false
	flex := attach.Volume{Name: "example.com/lvm/flexed"}
	elsewhere := attachmentOn("node-2", a, createdAt(ago(time.Hour)))
	onNode := func(other attach.OtherNode) map[corev1.UniqueVolumeName][]attach.OtherNode {
		return map[corev1.UniqueVolumeName][]attach.OtherNode{a.Name: {other}, login.Name: {other}}
	}
	unknown := attach.Attachment{Object: attachmentOn(here, a), Volume: attach.Volume{Driver: a.Driver, Source: a.Source}}
	needsA, hasA := []attach.Volume{a}, []attach.Attachment{attachment(a)}
	isMarked := marked(a.Name)

	for _, test := range []struct {
		name string
		view attach.View
		want []string
	}{
		// What pods need.
		{"a desired volume gets an attachment", attach.View{Node: managed(), Desired: needsA}, []string{"Create a"}},
		{"an unmanaged node attaches for itself", attach.View{Node: managed(func(node *corev1.Node) { node.Annotations = nil }), Desired: needsA}, nil},
		{"so does one with the value false", attach.View{Node: managed(func(node *corev1.Node) { node.Annotations[attach.ManagedAnnotation] = "false" }), Desired: needsA, Attachments: hasA}, nil},
		{"nothing is attached to a node that does not exist", attach.View{Desired: needsA}, nil},
		{"a cordoned node is like any other", attach.View{Node: managed(func(node *corev1.Node) { node.Spec.Unschedulable = true }), Desired: needsA}, []string{"Create a"}},
		{"a node that isn't Ready may come back", attach.View{Node: managed(notReady), Desired: needsA}, []string{"Create a"}},
		{"a node that is off gets nothing", attach.View{Node: managed(notReady, outOfService), Desired: needsA}, []string{"Wait a NodeOff"}},
		{"the taint is nothing to a Ready node", attach.View{Node: managed(outOfService), Desired: needsA}, []string{"Create a"}},
		{
			"a volume that is being attached is waited for",
			attach.View{Node: managed(), Desired: needsA, Attachments: []attach.Attachment{attachment(a, notAttached)}},
			[]string{},
		},
		{"an attached volume is marked", attach.View{Node: managed(), Desired: needsA, Attachments: hasA}, []string{"MarkAttached a"}},
		{"and marked once", attach.View{Node: managed(isMarked), Desired: needsA, Attachments: hasA}, []string{}},
		{
			"what is not attached any more is unmarked",
			attach.View{Node: managed(isMarked), Desired: needsA, Attachments: []attach.Attachment{attachment(a, notAttached)}},
			[]string{"UnmarkAttached a"},
		},
		{
			"unless the node uses it",
			attach.View{Node: managed(isMarked, using(a)), Desired: needsA, Attachments: []attach.Attachment{attachment(a, notAttached)}},
			[]string{},
		},
		{
			"a pod that came back waits until the volume is detached",
			attach.View{Node: managed(), Desired: needsA, Attachments: []attach.Attachment{attachment(a, deleting)}},
			[]string{"Wait a Detaching"},
		},
		{
			"and does not start on what is being detached",
			attach.View{Node: managed(isMarked), Desired: needsA, Attachments: []attach.Attachment{attachment(a, deleting)}},
			[]string{"UnmarkAttached a", "Wait a Detaching"},
		},
		{
			"an attachment that was deleted by hand is created again",
			attach.View{Node: managed(isMarked, using(a)), Desired: needsA},
			[]string{"Create a"},
		},
		{
			"an attachment of the right name counts, whatever created it",
			attach.View{Node: managed(), Desired: needsA, Attachments: []attach.Attachment{{Object: attachmentOn(here, a), Foreign: true}}},
			[]string{"MarkAttached a"},
		},

		// One node at a time.
		{
			"a volume that another node has is waited for",
			attach.View{Node: managed(), Desired: needsA, OtherNodes: onNode(attach.OtherNode{Node: "node-2", Attachment: elsewhere})},
			[]string{"Wait a AttachedElsewhere"},
		},
		{
			"so is one that another node only has in volumesAttached",
			attach.View{Node: managed(), Desired: needsA, OtherNodes: onNode(attach.OtherNode{Node: "node-2"})},
			[]string{"Wait a AttachedElsewhere"},
		},
		{
			"the younger attachment gives way",
			attach.View{Node: managed(), Desired: needsA, Attachments: []attach.Attachment{attachment(a, notAttached)}, OtherNodes: onNode(attach.OtherNode{Node: "node-2", Attachment: elsewhere})},
			[]string{"Delete a after a live read"},
		},
		{
			"and is unmarked first",
			attach.View{Node: managed(isMarked), Desired: needsA, Attachments: []attach.Attachment{attachment(a, notAttached)}, OtherNodes: onNode(attach.OtherNode{Node: "node-2", Attachment: elsewhere})},
			[]string{"UnmarkAttached a", "Delete a"},
		},
		{
			"the older one does not",
			attach.View{Node: managed(), Desired: needsA, Attachments: []attach.Attachment{attachment(a, notAttached)}, OtherNodes: onNode(attach.OtherNode{Node: "node-2", Attachment: attachmentOn("node-2", a, createdAt(now))})},
			[]string{},
		},
		{
			"nor does an attached one",
			attach.View{Node: managed(), Desired: needsA, Attachments: hasA, OtherNodes: onNode(attach.OtherNode{Node: "node-2", Attachment: elsewhere})},
			[]string{"MarkAttached a"},
		},
		{"what many nodes may have, many get", attach.View{Node: managed(), Desired: []attach.Volume{shared}}, []string{"Create shared"}},

		// Volumes that the node itself logs in to.
		{"what needs no driver is only marked", attach.View{Node: managed(), Desired: []attach.Volume{login}}, []string{"MarkAttached kubernetes.io/iscsi/portal:iqn:0"}},
		{"and marked once, too", attach.View{Node: managed(marked(login.Name)), Desired: []attach.Volume{login}}, []string{}},
		{
			"and not while another node has it",
			attach.View{Node: managed(), Desired: []attach.Volume{login}, OtherNodes: onNode(attach.OtherNode{Node: "node-2"})},
			[]string{"Wait kubernetes.io/iscsi/portal:iqn:0 AttachedElsewhere"},
		},
		{"and unmarked in the end", attach.View{Node: managed(marked(login.Name))}, []string{"UnmarkAttached kubernetes.io/iscsi/portal:iqn:0"}},
		{"but not while in use", attach.View{Node: managed(marked(login.Name), using(login))}, []string{"Wait kubernetes.io/iscsi/portal:iqn:0 InUse"}},
		{"a flex volume that is known is unmarked", attach.View{Node: managed(marked(flex.Name)), Known: []attach.Volume{flex}}, []string{"UnmarkAttached example.com/lvm/flexed"}},
		{"an entry of another component stays", attach.View{Node: managed(marked(flex.Name, "kubernetes.io/gce-pd/old", "else"))}, []string{}},

		// What no pod needs any more.
		{"a volume that no pod needs is detached in two steps", attach.View{Node: managed(isMarked), Attachments: hasA}, []string{"UnmarkAttached a", "Delete a"}},
		{"the second follows once the first is done", attach.View{Node: managed(), Attachments: hasA}, []string{"Delete a after a live read"}},
		{"what is in use stays", attach.View{Node: managed(isMarked, using(a)), Attachments: hasA}, []string{"Wait a InUse"}},
		{"even if it is not marked", attach.View{Node: managed(using(a)), Attachments: hasA}, []string{"Wait a InUse"}},
		{"and where the node isn't Ready", attach.View{Node: managed(notReady, isMarked, using(a)), Attachments: hasA}, []string{"Wait a InUse"}},
		{"what is being detached is unmarked", attach.View{Node: managed(isMarked), Attachments: []attach.Attachment{attachment(a, deleting)}}, []string{"UnmarkAttached a"}},
		{"unless it is in use", attach.View{Node: managed(isMarked, using(a)), Attachments: []attach.Attachment{attachment(a, deleting)}}, []string{}},
		{"a node that is gone cannot report what it uses", attach.View{Attachments: hasA}, []string{"Wait a NodeGone"}},
		{"what is being detached from a node that is gone, is detached", attach.View{Attachments: []attach.Attachment{attachment(a, deleting)}}, []string{}},
		{
			"a node that came back may not have isMarked yet what it uses",
			attach.View{Node: managed(func(node *corev1.Node) { node.CreationTimestamp = metav1.NewTime(ago(20 * time.Second)) }), Attachments: hasA},
			[]string{"Wait a Settling"},
		},
		{
			"later it has",
			attach.View{Node: managed(func(node *corev1.Node) { node.CreationTimestamp = metav1.NewTime(ago(2 * time.Minute)) }), Attachments: []attach.Attachment{attachment(a, createdAt(ago(time.Hour)))}},
			[]string{"Delete a after a live read"},
		},
		{"the attachment of a volume that is gone is removed", attach.View{Node: managed(), Attachments: []attach.Attachment{unknown}}, []string{"Delete a after a live read"}},
		{"one that others made is left alone", attach.View{Node: managed(), Attachments: []attach.Attachment{{Object: attachmentOn(here, a), Foreign: true}}}, []string{}},
		{"an entry without attachment is unmarked", attach.View{Node: managed(isMarked)}, []string{"UnmarkAttached handle-of-a"}},
		{"unless the node still uses it", attach.View{Node: managed(isMarked, using(a))}, []string{"Wait handle-of-a InUse"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.view.Name, test.view.Now = here, now
			if got := textOf(attach.Plan(test.view)); !slices.Equal(got, test.want) {
				t.Errorf("the plan is %q, not %q", got, test.want)
			}
		})
	}
}

func TestByForce(t *testing.T) {
	a := disk("a")
	wait := func(node *corev1.Node, attachments ...attach.Attachment) attach.Step {
		steps := attach.Plan(attach.View{Name: here, Node: node, Attachments: attachments, Now: now})
		if len(steps) != 1 || !steps[0].Forcible() {
			t.Fatalf("there is nothing to force in %q", textOf(steps))
		}
		return steps[0]
	}
	for _, test := range []struct {
		name string
		node *corev1.Node
		has  []attach.Attachment
		want []string
	}{
		{"unmarks first", managed(marked(a.Name), using(a)), []attach.Attachment{attachment(a)}, []string{"UnmarkAttached a by force", "Delete a by force"}},
		{"deletes what is not marked", managed(using(a)), []attach.Attachment{attachment(a)}, []string{"Delete a after a live read by force"}},
		{"only deletes if there is no node", nil, []attach.Attachment{attachment(a)}, []string{"Delete a after a live read by force"}},
		{"unmarks what has no attachment", managed(marked(a.Name), using(a)), nil, []string{"UnmarkAttached handle-of-a by force"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := textOf(wait(test.node, test.has...).ByForce(test.node)); !slices.Equal(got, test.want) {
				t.Errorf("force does %q, not %q", got, test.want)
			}
		})
	}
}

func TestForcible(t *testing.T) {
	for cause, forcible := range map[attach.Cause]bool{
		attach.InUse: true, attach.NodeGone: true, attach.Settling: true,
		attach.AttachedElsewhere: false, attach.Detaching: false, attach.NodeOff: false,
	} {
		if got := (attach.Step{Action: attach.Wait, Cause: cause}).Forcible(); got != forcible {
			t.Errorf("%s is forcible: %v", cause, got)
		}
	}
}

func TestVolumesAttachedKeepsOrderAndForeignEntries(t *testing.T) {
	a, b, c := disk("a"), disk("b"), disk("c")
	node := managed(marked("else", a.Name, "more", b.Name))
	got, changed := attach.VolumesAttached(node, []attach.Step{{Action: attach.UnmarkAttached, Volume: a}, {Action: attach.MarkAttached, Volume: c}, {Action: attach.Wait, Volume: b}})

	var names []corev1.UniqueVolumeName
	for _, attached := range got {
		names = append(names, attached.Name)
	}
	if want := []corev1.UniqueVolumeName{"else", "more", b.Name, c.Name}; !changed || !slices.Equal(names, want) {
		t.Errorf("volumesAttached is %q, not %q", names, want)
	}
	if _, changed := attach.VolumesAttached(node, []attach.Step{{Action: attach.Wait, Volume: a}, {Action: attach.UnmarkAttached, Volume: c}}); changed {
		t.Error("it reports a change where nothing changed")
	}
}

func TestOlder(t *testing.T) {
	a := disk("a")
	first, second := attachmentOn("node-1", a, createdAt(ago(time.Hour))), attachmentOn("node-2", a)
	twin := func(name string) *storagev1.VolumeAttachment {
		object := attachmentOn(here, a)
		object.Name = name
		return object
	}
	if attach.Older(first, second) >= 0 || attach.Older(second, first) <= 0 {
		t.Error("the attachment that was created first is older")
	}
	if attach.Older(twin("a"), twin("b")) >= 0 || attach.Older(twin("a"), twin("a")) != 0 {
		t.Error("of those created at once, the name decides")
	}
}
