package volumes_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
)

type document struct {
	proofs    proofs
	insteadOf map[string]string
	// proved is what the document says and has shown the proofs of.
	proved map[string]bool
}

func newDocument(found proofs, insteadOf map[string]string) *document {
	return &document{proofs: found, insteadOf: insteadOf, proved: map[string]bool{}}
}

// render fills in the prose, and compares it with the markers and the API.
func (d *document) render(prose string) (string, error) {
	parsed, err := template.New("volumes").Funcs(template.FuncMap{"proofs": d.show, "notServed": d.notServed}).Parse(prose)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if err := parsed.Execute(&text, nil); err != nil {
		return "", err
	}
	return text.String(), errors.Join(d.checkMarkers(), d.checkTypes())
}

func (d *document) show(what string) (string, error) {
	found := d.proofs[what]
	if len(found) == 0 {
		return "", fmt.Errorf("no test proves %s: mark one with %s%s, or take it out of the document", what, marker, what)
	}
	d.proved[what] = true
	links := make([]string, 0, len(found))
	for _, proof := range found {
		links = append(links, fmt.Sprintf("[%s](../%s)", strings.ReplaceAll(proof.test, "|", `\|`), proof.file))
	}
	return strings.Join(links, "<br>"), nil
}

func (d *document) notServed() string {
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(d.insteadOf)) {
		rows = append(rows, fmt.Sprintf("| %#q | %s |", name, d.insteadOf[name]))
	}
	return strings.Join(rows, "\n")
}

func (d *document) checkMarkers() error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(d.proofs)) {
		if !d.proved[name] {
			problems = append(problems, fmt.Errorf("%s says that a test proves %s, which isn't in the document: correct the marker, or describe it", d.proofs[name][0].file, name))
		}
	}
	return errors.Join(problems...)
}

func (d *document) checkTypes() error {
	var problems []error
	for _, name := range typesOfAPI() {
		_, unserved := d.insteadOf[name]
		switch proved := d.hasProved(name); {
		case !proved && !unserved:
			problems = append(problems, fmt.Errorf("of volume type %s nothing is said: prove that it is served, or say what to use instead", name))
		case proved && unserved:
			problems = append(problems, fmt.Errorf("volume type %s is proved to be served, and listed as not served", name))
		}
	}
	return errors.Join(problems...)
}

func (d *document) hasProved(name string) bool {
	for what := range d.proved {
		if strings.HasPrefix(what, name+"/") {
			return true
		}
	}
	return false
}

func typesOfAPI() []string {
	var names []string
	for _, union := range []reflect.Type{reflect.TypeFor[corev1.VolumeSource](), reflect.TypeFor[corev1.PersistentVolumeSource]()} {
		for i := range union.NumField() {
			name, _, _ := strings.Cut(union.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
