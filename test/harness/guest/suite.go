package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

const (
	// runArgument starts a suite. All arguments after it are flags of the Ginkgo CLI.
	runArgument = "run"
	// folderVariable names the suite's folder to the processes that run its specs.
	folderVariable = "STOWAGE_E2E_FOLDER"
	progressAfter  = time.Minute
	// mostOfMessage is what the end of a run shows of a failure, in characters.
	mostOfMessage = 2000
)

// Suite is an end-to-end test that is a Ginkgo suite.
type Suite struct {
	// Name is that of its folder and its reports.
	Name string
	// Processes is how many run specs at once. 0: one.
	Processes int
	// Timeout is how long all of it may take.
	Timeout time.Duration
	// Services are what its nodes serve, beside what every node does. It is called on each
	// node.
	Services func() ([]any, error)
}

// Main is all of a suite's TestMain. It plays the part that this process was started for:
// `<suite>.test run [flags of ginkgo]` starts the suite, with namespaces of its own. In any
// other process, such as those of the Ginkgo CLI and of `go test`, it runs the tests.
func Main(m *testing.M, suite Suite) {
	remote.ServeCall()
	parts := []string{runArgument, insideArgument, nodeArgument, tidyArgument}
	if len(os.Args) < 2 || !slices.Contains(parts, os.Args[1]) {
		os.Exit(m.Run())
	}
	if err := suite.play(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", suite.Name, err)
		os.Exit(1)
	}
}

// RunSpecs runs the specs of a suite in the processes that Main has started for them. `go
// test` skips them.
func RunSpecs(t *testing.T, description string) {
	if os.Getenv(folderVariable) == "" {
		t.Skip("it needs guests: its target in the Makefile runs it")
	}
	// Client libraries log each call to a server that is away, which is no news here.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.ReportAfterSuite("steps", func(report ginkgo.Report) {
		steps, err := countSteps(report)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		fmt.Printf("\n%d steps held, in %.0f s.\n", steps, report.RunTime.Seconds())
	})
	ginkgo.RunSpecs(t, description)
}

// SuiteFolder is the folder of the suite that this process runs specs of.
func SuiteFolder() Folder { return Folder{os.Getenv(folderVariable)} }

func (s Suite) run(ctx context.Context, folder Folder) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	reports := filepath.Join(apiserver.Repository(), "bin", "test", "reports")
	if err := os.MkdirAll(reports, 0o755); err != nil {
		return err
	}
	// What an earlier run failed at is no failure of this one.
	report := filepath.Join(reports, s.Name+".json")
	if err := os.RemoveAll(report); err != nil {
		return err
	}
	arguments := slices.Concat([]string{
		"run", "-v", fmt.Sprintf("--procs=%d", max(s.Processes, 1)), "--timeout=" + s.Timeout.String(),
		"--poll-progress-after=" + progressAfter.String(), "--poll-progress-interval=" + progressAfter.String(),
		"--output-dir=" + reports, "--junit-report=" + s.Name + ".xml", "--json-report=" + s.Name + ".json",
	}, os.Args[3:], []string{program})
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeCharDevice == 0 {
		arguments = slices.Insert(arguments, 1, "--no-color")
	}
	cli := exec.CommandContext(ctx, filepath.Join(apiserver.Repository(), "bin", "ginkgo"), arguments...)
	cli.Env = append(os.Environ(), folderVariable+"="+folder.root)
	cli.Stdout, cli.Stderr = &progress{to: os.Stdout}, os.Stderr
	cli.WaitDelay = lastWords
	cli.Cancel = func() error {
		if folder.waits() {
			return os.Remove(folder.waiting())
		}
		// The signal is for the CLI's children, too, as Ctrl-C in a terminal is.
		return syscall.Kill(-cli.Process.Pid, syscall.SIGINT)
	}
	cli.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cli.Run(); isFailure(err) {
		return fmt.Errorf("running the specs, of which %s has reports: %w%s", reports, err, failures(report))
	}
	return nil
}

// failures are the names and messages of what failed, from a report in JSON: of a run whose log
// is cut, the end is seen. It is empty without a report.
func failures(path string) string {
	content, err := os.ReadFile(path)
	var reports []types.Report
	if err != nil || json.Unmarshal(content, &reports) != nil {
		return ""
	}
	var all strings.Builder
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			if spec.Failed() {
				fmt.Fprintf(&all, "\n%s: %.*s", spec.FullText(), mostOfMessage, spec.FailureMessage())
			}
		}
	}
	return all.String()
}

// isFailure reports whether a process failed, be it ended or not: of one that was ended and
// succeeded the error is the context's.
func isFailure(err error) bool { return err != nil && !errors.Is(err, context.Canceled) }

// countSteps counts the steps that held. A suite that passes without one has proved nothing.
func countSteps(report types.Report) (steps int, err error) {
	for _, spec := range report.SpecReports {
		for _, event := range spec.SpecEvents {
			if event.SpecEventType == types.SpecEventByEnd {
				steps++
			}
		}
	}
	if steps == 0 && report.SuiteSucceeded {
		err = errors.New("the suite passed without a step")
	}
	return steps, err
}
