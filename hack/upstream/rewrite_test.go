package main

import (
	"strings"
	"testing"
)

const story = `// Package volume has stories.
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
	rewritten, had, err := rewrite("story_test.go", []byte(story))
	if err != nil || !had {
		t.Fatalf("had %v, %v", had, err)
	}
	want := strings.Replace(story, `"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"`, `"github.com/stowage-dev/stowage/hack/upstream/persistentvolume"`, 1)
	if string(rewritten) != want {
		t.Errorf("it became\n%s", rewritten)
	}
}

func TestAFileWithoutTheControllerIsToldFromOthers(t *testing.T) {
	other := strings.Replace(story, `pkg/controller/volume/persistentvolume"`, `pkg/volume"`, 1)
	rewritten, had, err := rewrite("story_test.go", []byte(other))
	if err != nil || had || string(rewritten) != other {
		t.Errorf("had %v, %v, and it became\n%s", had, err, rewritten)
	}
}

func TestTestsOfAFileAreItsStories(t *testing.T) {
	stories, err := storiesOf("story_test.go", []byte(story))
	if err != nil || len(stories) != 1 || stories[0] != "TestOne" {
		t.Errorf("they are %v, %v", stories, err)
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
