// Package upstream_test tests the functions of play.sh.
package upstream_test

import (
	"os/exec"
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

// call calls functions of play.sh with an input.
func call(commands, input string) (output string, err error) {
	shell := exec.Command("bash", "-c", "source ./play.sh; "+commands)
	shell.Stdin = strings.NewReader(input)
	printed, err := shell.CombinedOutput()
	return string(printed), err
}

func TestOnlyTheImportOfTheControllerChanges(t *testing.T) {
	rewritten, err := call("rewrite", story)
	want := strings.Replace(story, `"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"`, `"github.com/stowage-dev/stowage/hack/upstream/persistentvolume"`, 1)
	if err != nil || rewritten != want {
		t.Errorf("%v, and it became\n%s", err, rewritten)
	}
	if output, err := call("rewrite | has_controller", story); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

func TestAFileWithoutTheControllerIsToldFromOthers(t *testing.T) {
	other := strings.Replace(story, `pkg/controller/volume/persistentvolume"`, `pkg/volume"`, 1)
	if rewritten, err := call("rewrite", other); err != nil || rewritten != other {
		t.Errorf("%v, and it became\n%s", err, rewritten)
	}
	if _, err := call("rewrite | has_controller", other); err == nil {
		t.Error("it is said to have the controller")
	}
}

func TestTestsOfAFileAreItsStories(t *testing.T) {
	if stories, err := call("stories volume", story); err != nil || stories != "volume/TestOne\n" {
		t.Errorf("they are %q, %v", stories, err)
	}
}

// skip reads skips, and prints the reason for volume/TestOne.
func skip(text string) (output string, err error) {
	return call(`all=$'volume/TestOne\nvolume/TestTwo'; read_skips; echo "${reasons[volume/TestOne]:-}"`, text)
}

func TestSkipsHaveReasons(t *testing.T) {
	for text, want := range map[string]string{
		"# a comment\n\nvolume/TestOne  It can't be.\n": "It can't be.\n",
		"volume/TestOne\n":                     "has no reason",
		"volume/TestOne a\nvolume/TestOne b\n": "is there twice",
	} {
		output, err := skip(text)
		if !strings.Contains(output, want) || (err == nil) != (output == want) {
			t.Errorf("%q is %q, %v", text, output, err)
		}
	}
}

func TestASkipThatMatchesNothingIsAnError(t *testing.T) {
	if output, err := skip("volume/TestTwo why\n"); err != nil {
		t.Errorf("of one that there is: %v: %s", err, output)
	}
	if output, err := skip("volume/TestThree why\n"); err == nil || !strings.Contains(output, "volume/TestThree") {
		t.Errorf("of one that there isn't: %v: %s", err, output)
	}
}

func TestSkipsNameStoriesOfASuite(t *testing.T) {
	for _, name := range []string{"TestTwo", "volumescheduling/TestTwo"} {
		if output, err := skip(name + " why\n"); err == nil {
			t.Errorf("%s is taken for volume/TestTwo: %s", name, output)
		}
	}
}
