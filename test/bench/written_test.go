package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/stowage-dev/stowage/test/harness/fixture"
)

func wrote(t *testing.T, program string, volumes ...*corev1.PersistentVolume) writtenBy {
	t.Helper()
	w := writtenBy{program, sets.New[string]()}
	for _, pv := range volumes {
		if err := w.add(pv); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestObjectsWithOtherValuesAreComparable(t *testing.T) {
	mine, yours := fixture.Volume("a"), fixture.Volume("b")
	mine.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "manager"}}
	mine.Spec.ClaimRef, yours.Spec.ClaimRef = referenceTo(fixture.Claim()), referenceTo(fixture.Claim(fixture.ClaimNamed("other")))
	if err := wrote(t, managerName, mine).compare(wrote(t, bareName, yours)); err != nil {
		t.Error(err)
	}
}

func TestObjectsWithOtherFieldsAreNot(t *testing.T) {
	for field, more := range map[string]func(*corev1.PersistentVolume){
		".metadata.annotations.note": func(pv *corev1.PersistentVolume) { pv.Annotations = map[string]string{"note": "x"} },
		".metadata.finalizers[1]":    func(pv *corev1.PersistentVolume) { pv.Finalizers = []string{"a", "b"} },
		".status.phase":              func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound },
	} {
		full, lean := fixture.Volume("a"), fixture.Volume("a")
		lean.Finalizers, full.Finalizers = []string{"a"}, []string{"a"}
		more(full)
		mine, bare := wrote(t, managerName, full), wrote(t, bareName, lean)
		for _, err := range []error{mine.compare(bare), bare.compare(mine)} {
			if err == nil || !strings.Contains(err.Error(), "only manager wrote [*v1.PersistentVolume"+field+"]") ||
				!strings.Contains(err.Error(), "only bare wrote []") {
				t.Errorf("field %s: %v", field, err)
			}
		}
	}
}
