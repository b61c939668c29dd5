package reference_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// reasons is testdata/reasons.yaml.
type reasons struct {
	Events     map[string]eventReason `json:"events"`
	Conditions []conditionsOf         `json:"conditions"`
}

type eventReason struct {
	On   []string `json:"objects"`
	Type []string `json:"type"`
	Cure string   `json:"cure"`
}

// conditionsOf are the conditions of one kind. In are the folders of the code that sets them, Constants
// those of the reasons. Kinds is true if the kinds of backends' errors are reasons.
type conditionsOf struct {
	Kind      string           `json:"kind"`
	In        []string         `json:"in"`
	Constants []string         `json:"constants"`
	Events    []string         `json:"events"`
	Kinds     bool             `json:"kinds"`
	Types     map[string][]row `json:"types"`
}

// row is a status, a reason, a cure, and sometimes a cause.
type row []string

func (r row) status() string { return r[0] }
func (r row) reason() string { return r[1] }
func (r row) cure() string   { return r[2] }

func written(t *testing.T) reasons {
	t.Helper()
	text, err := os.ReadFile("testdata/reasons.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all reasons
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// has reports whether a kind has a condition with a reason.
func (c conditionsOf) has(reason string) bool {
	for _, rows := range c.Types {
		if slices.ContainsFunc(rows, func(r row) bool { return r.reason() == reason }) {
			return true
		}
	}
	return false
}

func TestNoReasonIsABareString(t *testing.T) {
	for _, at := range read(t).bare {
		t.Errorf("%s: declare a constant for it in internal/event, internal/bindable or api/v1alpha1", at)
	}
}

func TestEveryEventIsInThePageAndNoOther(t *testing.T) {
	code, page := read(t), written(t)
	for name, declared := range code.constants[eventFolder] {
		entry, is := page.Events[declared.value]
		switch {
		case !is:
			t.Errorf("testdata/reasons.yaml doesn't have the event %s", declared.value)
		case len(code.uses[eventFolder+"."+name]) == 0:
			t.Errorf("event.%s is declared, and nothing records it", name)
		case declared.cause == "" || entry.Cure == "" || len(entry.On) == 0:
			t.Errorf("%s has no cause, no cure, or no object", declared.value)
		}
		for _, kind := range code.kinds[eventFolder+"."+name] {
			if !slices.Contains(entry.Type, kind) {
				t.Errorf("%s is recorded as %s, too: testdata/reasons.yaml says %s", declared.value, kind, entry.Type)
			}
		}
	}
	for reason := range page.Events {
		if !slices.ContainsFunc(slices.Collect(maps.Values(code.constants[eventFolder])), func(c constant) bool { return c.value == reason }) {
			t.Errorf("testdata/reasons.yaml has the event %s, which nothing records", reason)
		}
	}
}

func TestEveryConditionIsInThePageAndNoOther(t *testing.T) {
	code, page := read(t), written(t)
	for name, folders := range code.uses {
		folder, _, _ := cutLast(name, ".")
		if folder == eventFolder {
			continue
		}
		reason := code.find(name).value
		for _, used := range folders {
			setters := slices.DeleteFunc(slices.Clone(page.Conditions), func(of conditionsOf) bool { return !within(used, of.In) })
			if len(setters) == 0 {
				t.Errorf("%s uses the reason %s: testdata/reasons.yaml doesn't say whose conditions it sets", used, reason)
			}
			if !slices.ContainsFunc(setters, func(of conditionsOf) bool { return of.has(reason) }) {
				t.Errorf("%s uses the reason %s, which testdata/reasons.yaml doesn't have", used, reason)
			}
		}
	}
	for _, of := range page.Conditions {
		for kind, rows := range of.Types {
			for _, row := range rows {
				if !code.canSet(of, row.reason()) {
					t.Errorf("nothing sets %s of a %s with reason %s", kind, of.Kind, row.reason())
				}
				if code.causeOf(of, row) == "" || row.cure() == "" {
					t.Errorf("%s of a %s with reason %s has no cause or no cure", kind, of.Kind, row.reason())
				}
			}
		}
	}
}

func TestEveryTypeOfConditionIsInThePageAndNoOther(t *testing.T) {
	code, page := read(t), written(t)
	var listed []string
	for _, of := range page.Conditions {
		listed = slices.AppendSeq(listed, maps.Keys(of.Types))
	}
	listed = slices.Compact(slices.Sorted(slices.Values(listed)))
	if set := slices.Sorted(maps.Keys(code.types)); !slices.Equal(set, listed) {
		t.Errorf("the code has the types %s, and testdata/reasons.yaml has %s", set, listed)
	}
	for _, of := range page.Conditions {
		if !of.Kinds {
			continue
		}
		for _, kind := range code.errorKinds {
			// Work in flight is no error: failExpansion waits.
			if kind.value != "Queued" && kind.value != "InProgress" && !of.has(kind.value) {
				t.Errorf("ControllerResizeError lacks the kind %s", kind.value)
			}
		}
	}
}

func TestConditionsThatAreEventsTooAreMarked(t *testing.T) {
	var marked []string
	for _, of := range written(t).Conditions {
		if len(of.Events) > 0 {
			marked = append(marked, of.Kind)
		}
	}
	folders := map[string]string{
		"controllers/storagebackend": "StorageBackend", "controllers/nodevolume": "NodeVolume",
		"internal/node/localdisk/volumeagent": "NodeVolume", "internal/node/localdisk/diskagent": "NodeDisk",
	}
	var recorded []string
	for _, folder := range read(t).dynamic {
		kind, is := folders[folder]
		if !is {
			t.Errorf("%s records events with reasons of conditions: testdata/reasons.yaml marks whose", folder)
		}
		recorded = append(recorded, kind)
	}
	recorded = slices.Compact(slices.Sorted(slices.Values(recorded)))
	slices.Sort(marked)
	if !slices.Equal(marked, recorded) {
		t.Errorf("%s are marked, and %s recorded", marked, recorded)
	}
}

const generated = "<!-- Generated from the comments of the reasons and test/reference/testdata/reasons.yaml: go test ./test/reference -update -->\n"

func TestThePageOfEventsIsCurrent(t *testing.T) {
	code, page := read(t), written(t)
	var text strings.Builder
	text.WriteString("# Events\n\n" + generated + `
Every event that the manager and the node agents record, by reason. ` + "`kubectl get events -A --field-selector reason=REASON`" + `
finds those of one reason. An event is recorded once for a problem, not at each retry, and the message has
the numbers and the names. Of many events in a short time, most appear up to ten seconds later. Events with reason ` + "`LeaderElection`" + `, on the Lease of the managers, are of the library
that elects the leader.

| reason | on | type | cause | cure |
|---|---|---|---|---|
`)
	causes := map[string]string{}
	for _, declared := range code.constants[eventFolder] {
		causes[declared.value] = declared.cause
	}
	for _, reason := range slices.Sorted(maps.Keys(page.Events)) {
		of := page.Events[reason]
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s |\n", reason, strings.Join(of.On, ", "), strings.Join(of.Type, ", "), causes[reason], of.Cure)
	}
	text.WriteString("\n## Conditions that are events, too\n\nA condition of this table that turns False is also a Warning event on its object, with the condition's\n" +
		"reason and message. (NodeGone: that turns True.) NodeVolumes record none for `Pending`.\n\n| on | condition | reasons |\n|---|---|---|\n")
	for _, of := range page.Conditions {
		for _, kind := range of.Events {
			var problems []string
			for _, row := range of.Types[kind] {
				if row.reason() != "Ready" && row.reason() != "Pending" && row.status() != "Unknown" {
					problems = append(problems, "`"+row.reason()+"`")
				}
			}
			fmt.Fprintf(&text, "| [%s](conditions.md#%s) | `%s` | %s |\n", of.Kind, strings.ToLower(of.Kind), kind, strings.Join(problems, ", "))
		}
	}
	checkPage(t, "events.md", text.String())
}

func TestThePageOfConditionsIsCurrent(t *testing.T) {
	code, page := read(t), written(t)
	var text strings.Builder
	text.WriteString("# Conditions\n\n" + generated + `
Every condition that the manager and the node agents set. The message of a condition has the numbers and the
names; a message of more than 4,096 bytes lacks its middle. ` + "`kubectl stowage explain`" + ` follows the conditions from
a pod to the disk.

Two more fields of Kubernetes' own objects say what a condition would say. ` + "`status.reason`" + ` of a
PersistentVolume in its undelete window is ` + "`UndeletableUntil`" + ` and the deadline. ` + "`status.attachError`" + ` and
` + "`status.detachError`" + ` of a VolumeAttachment have the last error of the backend.
`)
	for _, of := range page.Conditions {
		fmt.Fprintf(&text, "\n## %s\n", of.Kind)
		for _, kind := range slices.Sorted(maps.Keys(of.Types)) {
			fmt.Fprintf(&text, "\n### %s of a %s\n\n", kind, of.Kind)
			if about := code.types[kind]; about != "" && kind != "Ready" {
				text.WriteString(about + "\n\n")
			}
			text.WriteString("| status | reason | cause | cure |\n|---|---|---|---|\n")
			for _, row := range of.Types[kind] {
				fmt.Fprintf(&text, "| %s | `%s` | %s | %s |\n", row.status(), row.reason(), code.causeOf(of, row), row.cure())
			}
		}
	}
	checkPage(t, "conditions.md", text.String())
}
