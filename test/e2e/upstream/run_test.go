package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// lastWords is how long ginkgo may take to write its report when it is ended.
const lastWords = 45 * time.Second

// progressInterval is how far apart words about a suite that runs are at least.
const progressInterval = time.Minute

// run runs a suite. What its specs print goes to a file, and their report to bin/test.
func run(ctx context.Context, one suite) error {
	specs := chosen.specs[one.Name]
	folder := filepath.Join(apiserver.Repository(), "bin", "test", "upstream", overlay(), one.Name)
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755), onlyOn(ctx, one.Nodes)); err != nil {
		return err
	}
	command, err := ginkgoOf(ctx, one, specs, folder)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(folder, "specs.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	marks := &progress{of: len(specs), next: time.Now().Add(progressInterval)}
	command.Stdout = io.MultiWriter(log, marks)
	command.Stderr = command.Stdout
	verdict := command.Run()
	report, err := readReport(filepath.Join(folder, "junit_01.xml"))
	if err != nil {
		return errors.Join(verdict, fmt.Errorf("%w; see %s", err, log.Name()))
	}
	report.summarize(os.Stdout)
	if verdict != nil {
		return fmt.Errorf("suite %s: %d specs failed (%w); see %s", one.Name, len(report.failed()), verdict, log.Name())
	}
	return report.ran(len(specs))
}

// progress counts the specs that ended, by the marks that ginkgo prints, and says so from
// time to time.
type progress struct {
	of, ended int
	next      time.Time
}

// Write counts the marks in what ginkgo prints.
func (p *progress) Write(printed []byte) (int, error) {
	p.ended += bytes.Count(printed, []byte("•"))
	if now := time.Now(); now.After(p.next) {
		fmt.Printf("  %d of %d specs ended\n", p.ended, p.of)
		p.next = now.Add(progressInterval)
	}
	return len(printed), nil
}

// ginkgoOf is ginkgo, which runs the specs in processes of e2e.test's.
func ginkgoOf(ctx context.Context, one suite, specs []string, folder string) (*exec.Cmd, error) {
	paths := map[string]string{}
	for _, program := range []string{"ginkgo", "e2e.test", "kubectl"} {
		path, err := apiserver.Binary(program)
		if err != nil {
			return nil, err
		}
		paths[program] = path
	}
	// ginkgo compares its version with that of the module in whose folder the tests lie.
	tests := filepath.Join(cluster.Folder.Memory(), one.Name+".test")
	if err := os.Symlink(paths["e2e.test"], tests); err != nil {
		return nil, err
	}
	arguments := []string{
		"--no-color", "--nodes=" + strconv.Itoa(one.Parallel), "--timeout=" + suiteTimeout.String(), "--focus=" + exactly(specs),
		tests, "--", "--repo-root=" + home(),
		"--kubeconfig=" + cluster.Kubeconfig(), "--kubectl-path=" + paths["kubectl"], "--provider=skeleton",
		"--report-dir=" + folder, "--non-blocking-taints=" + apart,
	}
	command := exec.CommandContext(ctx, paths["ginkgo"], append(arguments, one.driverFlags()...)...)
	command.Dir = folder
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = lastWords
	return command, nil
}

// exactly is an expression of these specs and no others.
func exactly(specs []string) string {
	var quoted []string
	for _, spec := range specs {
		quoted = append(quoted, regexp.QuoteMeta(spec))
	}
	return " (" + strings.Join(quoted, "|") + ")$"
}
