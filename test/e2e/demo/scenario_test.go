package demo_test

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stowage-dev/stowage/test/harness/cluster"
)

const (
	// patience covers the lease that a killed manager leaves behind, on a busy machine.
	patience = 90 * time.Second
	interval = 100 * time.Millisecond
	// logLines is how much of each log a failure shows.
	logLines = 25
	// someLines is how much of a long answer is shown.
	someLines = 4
)

//go:embed manifests
var manifests embed.FS

// scenario shows what is done and checks what comes of it. What doesn't hold ends the
// chapter at once, so that chapters need no error handling.
type scenario struct {
	// ctx is the present chapter's.
	ctx     context.Context
	began   time.Time
	cluster *cluster.Cluster
	checks  int
	// about is the object of the last check, in kubectl's words.
	about string
	// killed is whether manager and node agent don't run on purpose.
	killed bool
}

// condition is nil if it holds, else what was seen instead.
type condition func() error

// say explains something to the reader.
func (*scenario) say(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	fmt.Println("  " + strings.ReplaceAll(text, "\n", "\n  "))
}

// notShown skips a chapter that this machine can't show.
func (*scenario) notShown(why string) {
	GinkgoHelper()
	fmt.Println("  NOT SHOWN: " + why)
	Skip(why)
}

// check states something that must hold soon. about is an object, in kubectl's words,
// that a failure shows.
func (s *scenario) check(what, about string, holds condition) {
	GinkgoHelper()
	By(what)
	started := time.Now()
	s.about = about
	Eventually(s.ctx, s.whileRunning(holds)).WithTimeout(patience).WithPolling(interval).Should(Succeed(), "it doesn't hold that %s", what)
	s.checks++
	fmt.Printf("  ✓ %s%s\n", what, took(started))
}

// whileRunning is a condition that ends the wait for it once a program of Stowage is gone.
func (s *scenario) whileRunning(holds condition) condition {
	return func() error {
		err := holds()
		if err == nil || s.killed {
			return err
		}
		for _, program := range s.cluster.Programs() {
			select {
			case <-program.Ended():
				return StopTrying(fmt.Sprintf("%s ended by itself: %v", program.Name, program.Err())).Wrap(err)
			default:
			}
		}
		return err
	}
}

func took(since time.Time) string {
	if took := time.Since(since); took >= interval {
		return fmt.Sprintf("  (%.1f s)", took.Seconds())
	}
	return ""
}

// do does what only fails if the machine does.
func (*scenario) do(what func() error) {
	GinkgoHelper()
	Expect(what()).To(Succeed())
}

// values fill the variables of a manifest.
type values map[string]string

// apply applies a manifest.
func (s *scenario) apply(name string, with values) {
	GinkgoHelper()
	s.kubectl("apply", "-f", s.manifest(name, with))
}

// manifest writes a manifest with its variables filled in, and returns its file.
func (s *scenario) manifest(name string, with values) string {
	GinkgoHelper()
	content, err := manifests.ReadFile("manifests/" + name)
	Expect(err).NotTo(HaveOccurred())
	text := os.Expand(string(content), func(variable string) string {
		switch value, set := with[variable]; {
		case set:
			return value
		case variable == "DISKS":
			return s.cluster.Folder.Disks()
		default:
			return cluster.NodeName
		}
	})
	base := strings.TrimSuffix(name, ".yaml")
	if of := with["NAME"]; of != "" {
		base += "-" + of
	}
	file := filepath.Join(s.cluster.Folder.Root(), base+".yaml")
	Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	return file
}

// kubectl shows a command and what it answers. It must succeed.
func (s *scenario) kubectl(arguments ...string) {
	GinkgoHelper()
	output, err := s.try(arguments...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %s:\n%s", strings.Join(arguments, " "), output)
}

// try shows a command and what it answers, be it an error.
func (s *scenario) try(arguments ...string) (output string, err error) {
	GinkgoHelper()
	answer, err := s.command("", arguments).CombinedOutput()
	printSome(string(answer))
	return string(answer), err
}

// background shows a command and starts it. finish waits for it to succeed.
func (s *scenario) background(arguments ...string) (finish func() error) {
	GinkgoHelper()
	command := s.command(" &", arguments)
	Expect(command.Start()).To(Succeed())
	return command.Wait
}

// command shows a command of kubectl, with paths within the demo's folder.
func (s *scenario) command(mark string, arguments []string) *exec.Cmd {
	GinkgoHelper()
	line := "kubectl " + strings.ReplaceAll(strings.Join(arguments, " "), s.cluster.Folder.Root()+"/", "") + mark
	By(line)
	fmt.Println("  $ " + line)
	command, err := s.cluster.Kubectl(s.ctx, arguments...)
	Expect(err).NotTo(HaveOccurred())
	return command
}

// printSome prints the lines of a text, of a long one only the first few.
func printSome(text string) {
	if text == "" {
		return
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if i == someLines && len(lines) > someLines+1 {
			fmt.Printf("    … and %d more lines\n", len(lines)-i)
			return
		}
		fmt.Println("   ", line)
	}
}

// dump adds to the report of a failed chapter what helps to understand it: objects, and
// the ends of the logs.
func (s *scenario) dump(ctx context.Context) {
	if s.cluster == nil {
		return
	}
	for _, arguments := range [][]string{
		{"describe", s.about},
		{"get", "pv,pvc,pods,volumeattachments,storagebackends,nodevolumes,nodedisks", "--all-namespaces", "-o", "wide"},
		{"get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"},
	} {
		if command, err := s.cluster.Kubectl(ctx, arguments...); err == nil {
			output, _ := command.CombinedOutput() // an error is in the text
			AddReportEntry("kubectl "+strings.Join(arguments, " "), string(output), ReportEntryVisibilityFailureOrVerbose)
		}
	}
	for _, program := range s.cluster.Programs() {
		AddReportEntry("the end of the log of "+program.Name, cluster.Tail(program.LogFile, logLines), ReportEntryVisibilityFailureOrVerbose)
	}
}
