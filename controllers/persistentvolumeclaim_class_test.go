package controllers

import (
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/stowage-dev/stowage/test/fixture"
)

func TestTheNewestDefaultClassIsTheDefault(t *testing.T) {
	for name, test := range map[string]struct {
		classes []storagev1.StorageClass
		want    string
	}{
		"none":                  {nil, ""},
		"none that is default":  {[]storagev1.StorageClass{aged("a", 1, "")}, ""},
		"the newest":            {[]storagev1.StorageClass{aged("a", 1, annDefaultClass), aged("b", 2, annDefaultClass)}, "b"},
		"the first of equals":   {[]storagev1.StorageClass{aged("b", 1, annDefaultClass), aged("a", 1, annDefaultClass)}, "a"},
		"by the older name too": {[]storagev1.StorageClass{aged("a", 1, annBetaDefaultClass)}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if class := defaultOf(test.classes); class != nil {
				got = class.Name
			}
			if got != test.want {
				t.Errorf("%q is the default, not %q", got, test.want)
			}
		})
	}
}

func aged(name string, seconds int64, annotation string) storagev1.StorageClass {
	class := Class(name, "example.com/disks", nil)
	class.CreationTimestamp = metav1.NewTime(time.Unix(seconds, 0))
	if annotation != "" {
		class.Annotations = map[string]string{annotation: "true"}
	}
	return *class
}
