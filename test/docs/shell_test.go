package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// shell is the reader's, in a folder.
func shell(ctx context.Context, folder string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "bash", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG="+filepath.Join(home, "kubeconfig"), "PATH="+programs+":"+os.Getenv("PATH"))
	return command
}

// typed runs commands, and returns what they print.
func typed(ctx context.Context, folder, commands string) (string, error) {
	output, err := shell(ctx, folder, "-euo", "pipefail", "-c", commands).CombinedOutput()
	return string(output), err
}

func mustType(ctx context.Context, folder, commands string) {
	GinkgoHelper()
	output, err := typed(ctx, folder, commands)
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", commands, output)
}

// checks stands in for the programs of commands that are not run: kubectl only reads its flags, by
// --help, and make has to have the target. All other programs do nothing.
const checks = `
complain() { echo "WRONG: $*"; }
kubectl() {
  local arguments=() argument said
  for argument; do [[ $argument == -- ]] && break; arguments+=("$argument"); done
  said=$(command kubectl "${arguments[@]}" --help 2>&1) || complain "kubectl $*: $said"
}
make() {
  local argument
  for argument; do
    [[ $argument == *=* ]] || command grep -q "^$argument:" "$MAKEFILE" || complain "make $*: there is no target $argument"
  done
}
command_not_found_handle() { :; }
`

// wrongIn is what is wrong with commands, which are not run. The shell is a restricted one: it has
// no program but kubectl, writes no files, and can't leave its folder.
func wrongIn(ctx context.Context, folder, commands, makefile string) string {
	only := filepath.Join(folder, "only")
	Expect(os.MkdirAll(only, 0o700)).To(Succeed())
	for _, program := range []string{"kubectl", "kubectl-stowage"} {
		_ = os.Symlink(filepath.Join(programs, program), filepath.Join(only, program))
	}
	grep, err := exec.LookPath("grep")
	Expect(err).NotTo(HaveOccurred())
	_ = os.Symlink(grep, filepath.Join(only, "grep"))
	before := filepath.Join(folder, "checks")
	Expect(os.WriteFile(before, []byte(checks), 0o600)).To(Succeed())
	syntax := shell(ctx, folder, "-n", "-c", commands)
	if output, err := syntax.CombinedOutput(); err != nil {
		return string(output)
	}
	check := shell(ctx, folder, "--restricted", "-c", commands)
	check.Env = append(check.Env, "PATH="+only, "BASH_ENV="+before, "MAKEFILE="+makefile)
	output, _ := check.CombinedOutput() // commands that aren't there fail
	var wrong []string
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "WRONG: ") {
			wrong = append(wrong, line)
		}
	}
	return strings.Join(wrong, "")
}
