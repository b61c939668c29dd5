package filesystem

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestTheNodeAgentsImageHasEveryProgram(t *testing.T) {
	dockerfile, err := os.ReadFile("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, stage, found := strings.Cut(string(dockerfile), " AS node-agent\n")
	if !found {
		t.Fatal("the Dockerfile has no target node-agent")
	}
	installed := strings.Fields(stage)
	for program, debian := range packageOf {
		if !slices.Contains(installed, debian) {
			t.Errorf("the Dockerfile doesn't install %s, which has %s", debian, program)
		}
	}
}

func TestOfEveryProgramItIsKnownWhichPackageHasIt(t *testing.T) {
	for fsType, kind := range kinds {
		for _, program := range []string{"mkfs." + fsType, kind.grow, kind.fsck, "blkid", "prlimit"} {
			if program != "" && packageOf[program] == "" {
				t.Errorf("nothing says which package has %s", program)
			}
		}
	}
}
