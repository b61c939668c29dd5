package main

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// comparedObjects of each kind are looked at, of those that a program wrote.
const comparedObjects = 5

// writtenBy is what objects have after one program's turn.
type writtenBy struct {
	program string
	fields  sets.Set[string]
}

// compareWritten makes sure that Stowage's programs and the bare client leave objects with the same fields in each case of a
// benchmark: each costs the API server time, so a bare client that writes fewer is no limit.
func (b *testbed) compareWritten(m *measurement) error {
	isCompared := slices.Contains([]string{managerName, agentName, bareName}, m.Program)
	if len(m.written) == 0 || m.Done < m.N || !isCompared {
		return nil
	}
	now := writtenBy{m.Program, sets.New[string]()}
	for _, list := range m.written {
		if err := b.client.List(b.ctx, list, client.Limit(comparedObjects)); err != nil {
			return fmt.Errorf("reading what %s wrote: %w", m.Program, err)
		}
		if err := meta.EachListItem(list, now.add); err != nil {
			return err
		}
	}
	of := m.Benchmark + ", " + m.Case
	if before, is := b.written[of]; is {
		return before.compare(now)
	}
	b.written[of] = now
	return nil
}

// add adds all fields of an object that have a value.
func (w writtenBy) add(object runtime.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("reading the fields of a %T: %w", object, err)
	}
	w.addField(fmt.Sprintf("%T", object), content)
	return nil
}

func (w writtenBy) addField(path string, value any) {
	switch value := value.(type) {
	case nil:
	case object:
		for name, field := range value {
			if name != "managedFields" { // they have the programs' names
				w.addField(path+"."+name, field)
			}
		}
	case []any:
		for i, element := range value {
			w.addField(fmt.Sprintf("%s[%d]", path, i), element)
		}
	default:
		w.fields.Insert(path)
	}
}

// compare returns an error that has the fields that only one of two programs wrote.
func (w writtenBy) compare(other writtenBy) error {
	if w.fields.Equal(other.fields) {
		return nil
	}
	return fmt.Errorf("only %s wrote %v, and only %s wrote %v: a comparison needs the same objects",
		w.program, sets.List(w.fields.Difference(other.fields)), other.program, sets.List(other.fields.Difference(w.fields)))
}
