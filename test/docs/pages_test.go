package docs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

var _ = Describe("The commands of a page", func() {
	all, err := pages()
	if err != nil {
		panic(err)
	}
	for _, page := range all {
		content, err := contentOf(page)
		if err != nil {
			panic(err)
		}
		blocks, err := blocksOf(page, content)
		if err == nil && len(blocks) == 0 {
			continue
		}
		It("are typed, or their mark says what they need: "+page, func(ctx SpecContext) {
			Expect(err).NotTo(HaveOccurred())
			play(ctx, page, blocks)
		})
	}
})

// play types the blocks of a page, in a folder of their own, or checks those with a mark. The setting
// of the page is made again for each section.
func play(ctx context.Context, page string, blocks []block) {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	Expect(os.Symlink(filepath.Join(apiserver.Repository(), "config"), filepath.Join(folder, "config"))).To(Succeed())
	var section string
	var names words
	for i, each := range blocks {
		switch {
		case each.runBy != "":
			expectRunBy(each)
		case each.needs != "" && !isProgram(each.needs):
			commands, _ := each.commands()
			Expect(wrongIn(ctx, folder, strings.Join(commands, ""), filepath.Join(apiserver.Repository(), "Makefile"))).To(BeEmpty(), each.String())
		default:
			if setting := settings[page]; setting != nil && (names == nil || section != each.section) {
				names = setting(ctx, each.section, folder)
			}
			section = each.section
			run(ctx, folder, &blocks[i], names)
		}
	}
	if check := results[page]; check != nil {
		check(ctx)
	}
}

// run types a block. That a console's last command fails has to be in its output.
func run(ctx context.Context, folder string, each *block, names words) {
	GinkgoHelper()
	commands, fails := each.commands()
	for i, command := range commands {
		By(each.String())
		output, err := typed(ctx, folder, names.in(command))
		if fails && i == len(commands)-1 {
			Expect(err).To(HaveOccurred(), "%s\n%s\n%s", each, command, output)
			continue
		}
		Expect(err).NotTo(HaveOccurred(), "%s\n%s\n%s", each, names.in(command), output)
	}
}

// isProgram reports whether a need is the name of a program that is here.
func isProgram(need string) bool {
	_, err := exec.LookPath(need)
	return err == nil
}

// expectRunBy expects that the test in a mark is there, and names the page.
func expectRunBy(each block) {
	GinkgoHelper()
	Expect(each.runBy).To(HaveSuffix("_test.go"), each.String())
	test, err := os.ReadFile(filepath.Join(apiserver.Repository(), each.runBy))
	Expect(err).NotTo(HaveOccurred(), each.String())
	name := strings.TrimSuffix(each.page, "README.md")
	if name == "" {
		name = "README"
	}
	Expect(string(test)).To(ContainSubstring(name), "%s: %s doesn't name the page", each.String(), each.runBy)
}

// words are the names that take the place of words in a page.
type words map[string]string

func (w words) in(text string) string {
	for word, name := range w {
		text = regexp.MustCompile(`\b`+regexp.QuoteMeta(word)+`\b`).ReplaceAllLiteralString(text, name)
	}
	return text
}

var _ = Describe("What is checked of commands that aren't typed", func() {
	DescribeTable("finds what is wrong", func(ctx SpecContext, commands, wrong string) {
		folder := GinkgoT().TempDir()
		found := wrongIn(ctx, folder, commands, filepath.Join(apiserver.Repository(), "Makefile"))
		if wrong == "" {
			Expect(found).To(BeEmpty())
			return
		}
		Expect(found).To(ContainSubstring(wrong))
	},
		Entry("a flag of kubectl", "kubectl get pods --colour", "unknown flag: --colour"),
		Entry("a flag of the plug-in", "kubectl stowage list --retaind", "unknown flag: --retaind"),
		Entry("a target", "make deploi IMG=a", "no target deploi"),
		Entry("quotes", "kubectl get 'pods", "unexpected EOF"),
		Entry("nothing, of what is right", "kubectl get pods -A | grep x\nmake deploy IMG=a\nsudo mount /dev/x /y\nkubectl stowage list --retained\n", ""),
	)

	It("writes and removes no file", func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		kept := filepath.Join(folder, "kept")
		Expect(os.WriteFile(kept, nil, 0o600)).To(Succeed())
		wrongIn(ctx, folder, fmt.Sprintf("rm %s; echo >%s/new; touch %s/new", kept, folder, folder), "")
		Expect(kept).To(BeAnExistingFile())
		Expect(filepath.Join(folder, "new")).NotTo(BeAnExistingFile())
	})
})
