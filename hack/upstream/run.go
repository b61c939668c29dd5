package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// testTimeout ends a test that waits for what never happens: most of them have no
	// timeout of their own.
	testTimeout = 8 * time.Minute
	// lastWords is how long a process may take, after that, to print where it waits.
	lastWords = 20 * time.Second
	tailLines = 25
)

// runAll plays each test in a process of its own, with an etcd of its own: one that
// hangs takes no other with it.
func runAll(ctx context.Context, o options, built []suite, expected skips) error {
	var played, failed, skipped int
	for _, suite := range built {
		for _, test := range suite.tests {
			name := suite.name + "/" + test
			reason, skip := expected[name]
			switch {
			case !o.run.MatchString(name), o.skipped && !skip:
				continue
			case skip && !o.skipped:
				skipped++
				fmt.Printf("SKIP %s: %s\n", name, reason)
				continue
			}
			started := time.Now()
			err := o.runOne(ctx, suite, test)
			played++
			fmt.Printf("%s %s (%.0f s)\n", map[bool]string{true: "PASS", false: "FAIL"}[err == nil], name, time.Since(started).Seconds())
			if err != nil {
				failed++
				fmt.Println(indent(err.Error()))
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	fmt.Printf("upstream's tests: %d played, %d failed, %d skipped\n", played, failed, skipped)
	switch {
	case failed > 0:
		return fmt.Errorf("%d of upstream's tests failed; logs are in %s", failed, o.logs())
	case played == 0 && skipped == 0:
		return errors.New("no test is named so")
	default:
		return nil
	}
}

func (o options) logs() string { return filepath.Join(o.output(), "logs") }

func (o options) runOne(ctx context.Context, s suite, test string) error {
	folder := filepath.Join(o.logs(), s.name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(folder, test+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	temporary, err := os.MkdirTemp("", "s-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	ctx, cancel := context.WithTimeout(ctx, testTimeout+lastWords)
	defer cancel()
	command := exec.CommandContext(ctx, s.binary, "-test.v", "-test.run=^"+test+"$", "-test.timeout="+testTimeout.String())
	command.Dir, command.Stdout, command.Stderr = folder, log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// Its etcd is in its group; its manager is in none, and ends with it.
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.Env = append(os.Environ(), "PATH="+o.programs+string(os.PathListSeparator)+os.Getenv("PATH"), "TMPDIR="+temporary,
		"STOWAGE_REPOSITORY="+o.repository, "STOWAGE_LOGS="+folder,
		// Where upstream finds its own files: it knows paths of a trimmed build as Bazel's.
		"TEST_SRCDIR="+s.modules, "TEST_WORKSPACE=.",
		// No foreign etcd: at the default address there may be one.
		"KUBE_INTEGRATION_ETCD_URL=http://127.0.0.1:1")
	runErr := command.Run()
	if command.Process != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // an error says that nothing is left of it
	}
	text, err := os.ReadFile(log.Name())
	switch {
	case runErr != nil:
		return fmt.Errorf("%w; its last words in %s:\n%s", runErr, log.Name(), lastLines(string(text)))
	case err == nil && !strings.Contains(string(text), "--- PASS: "+test+" "):
		return fmt.Errorf("it was not played: %s", lastLines(string(text)))
	default:
		return err
	}
}

func lastLines(text string) string {
	var telling, all []string
	for line := range strings.Lines(text) {
		all = append(all, line)
		if strings.Contains(line, "_test.go:") || strings.HasPrefix(strings.TrimSpace(line), "--- FAIL") || strings.HasPrefix(line, "panic:") {
			telling = append(telling, line)
		}
	}
	if len(telling) > 0 {
		all = telling
	}
	return strings.Join(all[max(0, len(all)-tailLines):], "")
}

func indent(text string) string { return "     " + strings.ReplaceAll(text, "\n", "\n     ") }
