package datasource

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// pages answers lists of ReferenceGrants page by page, and decodes them as a client does.
type pages struct {
	client.Reader
	of    func(page int) (items string, last bool)
	reads int
}

func (p *pages) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	for _, option := range options {
		option.ApplyToList(&asked)
	}
	page, _ := strconv.Atoi(asked.Continue)
	p.reads++
	items, last := p.of(page)
	next := strconv.Itoa(page + 1)
	if last {
		next = ""
	}
	return json.Unmarshal([]byte(`{"metadata":{"continue":"`+next+`"},"items":[`+items+`]}`), into)
}

// grantTo is a grant to claims of the tenant; to all claims without a name.
func grantTo(name string) string {
	named := ""
	if name != "" {
		named = `,"name":"` + name + `"`
	}
	return `{"spec":{"from":[{"group":"","kind":"PersistentVolumeClaim","namespace":"tenant"}],"to":[{"group":"","kind":"PersistentVolumeClaim"` + named + `}]}}`
}

func copyElsewhere() *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	claim.Namespace = "tenant"
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: provisioned.ClaimKind, Name: "data", Namespace: new("default")}
	return claim
}

func TestAGrantToAllIsNotTakenForOneOfThePageBefore(t *testing.T) {
	reader := &pages{of: func(page int) (string, bool) {
		if page == 0 {
			return grantTo("other"), false
		}
		return grantTo(""), true
	}}
	if err := newGrants(reader).check(t.Context(), copyElsewhere()); err != nil || reader.reads != 2 {
		t.Errorf("after %d pages: %v", reader.reads, err)
	}
}

func TestTheGrantsOfANamespaceAreReadUpToALimit(t *testing.T) {
	reader := &pages{of: func(int) (string, bool) { return grantTo("other"), false }}
	err := newGrants(reader).check(t.Context(), copyElsewhere())
	if !errors.Is(err, backend.Unavailable) || !strings.Contains(err.Error(), "none of the first 1000 ReferenceGrants of namespace default") || reader.reads != maxGrants/grantsPage {
		t.Errorf("after %d pages: %v", reader.reads, err)
	}
}

func TestOnlyTheLastCopiesAreNoted(t *testing.T) {
	source, clone := &corev1.PersistentVolumeClaim{}, copyElsewhere()
	for i := range maxNoted + 2 {
		clone.Name, clone.UID = "copy"+strconv.Itoa(i), "uid"
		if !noteCopy(source, clone) || noteCopy(source, clone) {
			t.Errorf("copy %d isn't noted once", i)
		}
	}
	if notes := notesOf(source); len(notes) != maxNoted || !strings.HasPrefix(notes[0], "tenant/copy9/") || !strings.HasPrefix(notes[maxNoted-1], "tenant/copy2/") {
		t.Errorf("they are %v", notes)
	}
}

func TestNotesOfAnotherProgramAreBounded(t *testing.T) {
	source := &corev1.PersistentVolumeClaim{}
	for text, want := range map[string]int{"": 0, "nonsense": 0, "a/b": 0, "a/b/c": 1, strings.Repeat("a/b/c,", 1<<15): maxNoted} {
		source.Annotations = map[string]string{copiedFor: text}
		if got := notesOf(source); len(got) != want {
			t.Errorf("of %.20q they are %d", text, len(got))
		}
	}
}
