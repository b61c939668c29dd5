package main

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/stowage-dev/stowage/test/harness/page"
)

func TestThePageOfFlagsIsCurrent(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("NODE_NAME", "")
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	flags.SortFlags = false
	(&options{}).addFlags(flags)
	page.Flags(t, "manager", "```text\n"+flags.FlagUsagesWrapped(100)+"```\n")
}
