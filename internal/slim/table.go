package slim

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
)

const (
	// A table keeps values of objects that are gone, so it is bounded: the number of its values, how many entries a value
	// has, and how many bytes of text.
	tableSize  = 4096
	maxContent = 512
	maxEntries = 8
)

// The tables of all objects.
var (
	words        = newTable(itself)
	messages     = newTable(itself)
	settings     = newTable(contentOfMap)
	finalizers   = newTable(contentOfList[string])
	options      = newTable(contentOfList[string])
	accessModes  = newTable(contentOfList[corev1.PersistentVolumeAccessMode])
	resources    = newTable(contentOfResources)
	volumeModes  = newTable(contentOfPointer[corev1.PersistentVolumeMode])
	names        = newTable(contentOfPointer[string])
	affinities   = newTable(contentOfAffinity)
	containers   = newTable(contentOfContainers)
	conditionsOf = newTable(contentOfConditions)
)

// table keeps one of the values with the same content, of those that it was asked for last.
type table[Value any] struct {
	content func(Value) string
	known   *lru.Cache
}

// newTable makes a table of values that are alike if their content is. Values without content are not kept.
func newTable[Value any](content func(Value) string) table[Value] {
	return table[Value]{content: content, known: lru.New(tableSize)}
}

// one returns the value of this content that the table has, or the given one.
func (t table[Value]) one(value Value) Value {
	content := t.content(value)
	if content == "" || len(content) > maxContent {
		return value
	}
	if known, found := t.known.Get(content); found {
		return known.(Value)
	}
	t.known.Add(content, value)
	return value
}

func itself(text string) string { return text }

// word is the one copy of a string of any type.
func word[Word ~string](one Word) Word { return Word(words.one(string(one))) }

func contentOfPointer[Word ~string](pointer *Word) string { return string(ptr.Deref(pointer, "")) }

func contentOfList[Word ~string](list []Word) string {
	if len(list) > maxEntries {
		return ""
	}
	content := strings.Builder{}
	for _, one := range list {
		write(&content, string(one))
	}
	return content.String()
}

func contentOfMap(values map[string]string) string {
	if len(values) > maxEntries {
		return ""
	}
	content := strings.Builder{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		write(&content, key)
		write(&content, values[key])
	}
	return content.String()
}

// contentOfResources has each quantity as it is written: 1Gi is not 1024Mi.
func contentOfResources(list corev1.ResourceList) string {
	if len(list) > maxEntries {
		return ""
	}
	content := strings.Builder{}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		write(&content, string(name))
		write(&content, quantity.String())
	}
	return content.String()
}

func contentOfAffinity(affinity *corev1.VolumeNodeAffinity) string {
	if affinity == nil || affinity.Size() > maxContent || entriesOf(affinity) > maxEntries {
		return ""
	}
	encoded, err := affinity.Marshal()
	if err != nil {
		return ""
	}
	return string(encoded)
}

func entriesOf(affinity *corev1.VolumeNodeAffinity) (entries int) {
	if affinity.Required == nil {
		return 0
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		entries++
		for _, of := range slices.Concat(term.MatchExpressions, term.MatchFields) {
			entries += 1 + len(of.Values)
		}
	}
	return entries
}

// write appends a text with its length, so that no two lists have the same content.
func write(content *strings.Builder, text string) {
	content.WriteString(strconv.Itoa(len(text)))
	content.WriteByte(':')
	content.WriteString(text)
}
