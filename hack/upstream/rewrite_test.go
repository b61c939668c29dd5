package main

import (
	"strings"
	"testing"
)

const source = `// Package volume has tests.
package volume

import (
	pv "k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume/options"
)

// TestOne asserts something.
func TestOne(t *testing.T) { pv.NewController(options.None) }

func TestMain(m *testing.M) {}

func helper() {}
`

func TestOnlyTheImportOfTheControllerChanges(t *testing.T) {
	rewritten, had, err := rewrite("one_test.go", []byte(source))
	if err != nil || !had {
		t.Fatalf("had %v, %v", had, err)
	}
	want := strings.Replace(source, `"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"`, `"github.com/stowage-dev/stowage/hack/upstream/persistentvolume"`, 1)
	if string(rewritten) != want {
		t.Errorf("it became\n%s", rewritten)
	}
}

func TestAFileWithoutTheControllerIsDistinguished(t *testing.T) {
	other := strings.Replace(source, `pkg/controller/volume/persistentvolume"`, `pkg/volume"`, 1)
	rewritten, had, err := rewrite("one_test.go", []byte(other))
	if err != nil || had || string(rewritten) != other {
		t.Errorf("had %v, %v, and it became\n%s", had, err, rewritten)
	}
}

func TestTestsOfAFileAreFound(t *testing.T) {
	tests, err := testsOf("one_test.go", []byte(source))
	if err != nil || len(tests) != 1 || tests[0] != "TestOne" {
		t.Errorf("they are %v, %v", tests, err)
	}
}

const table = `package persistentvolume

func runSyncTests(t *testing.T) { doit := func() { t.Run("other", helper) }; doit() }

func TestControllerSync(t *testing.T) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			doit(test)
		})
	}
}
`

func TestATableRecordsItsRows(t *testing.T) {
	changed, found, err := recording("table_test.go", []byte(table))
	if err != nil || len(found) != 2 {
		t.Fatalf("found %v, %v", found, err)
	}
	want := strings.NewReplacer("func runSyncTests", "func upstream_runSyncTests",
		"func(t *testing.T) {\n\t\t\t", "func(t *testing.T) {"+inserted["TestControllerSync"]+"\n\t\t\t").Replace(table)
	if string(changed) != want {
		t.Errorf("it became\n%s", changed)
	}
}
