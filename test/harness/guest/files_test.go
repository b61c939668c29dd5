package guest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestEveryProcessIsListedWithItsParentAndCommand(t *testing.T) {
	var all string
	if err := (Processes{}).All(Nothing{}, &all); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d (", os.Getpid())
	for line := range strings.Lines(all) {
		if strings.HasPrefix(line, want) && strings.Contains(line, fmt.Sprintf(") parent %d, ", os.Getppid())) && strings.Contains(line, os.Args[0]) {
			return
		}
	}
	t.Errorf("this process is none of\n%s", all)
}
