package kube

import (
	"strings"
	"testing"
)

func TestTheQuickStartIsFoundInREADME(t *testing.T) {
	install, use, err := QuickStart()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(install, "make deploy") || !strings.Contains(use, "kubectl exec") {
		t.Errorf("it is %q and %q", install, use)
	}
}

func TestBlocksOfCodeEndWithTheirSection(t *testing.T) {
	text := "# One\n```\nnot this\n```\n## Two\n```sh\na\nb\n```\nwords\n```\nc\n```\n## Three\n```\nnor this\n```\n"
	if blocks := blocksBelow("## Two", text); len(blocks) != 2 || blocks[0] != "a\nb" || blocks[1] != "c" {
		t.Errorf("they are %q", blocks)
	}
}
