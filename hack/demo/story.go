package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/test/cluster"
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

// story tells and checks. After the first thing that does not hold it says and
// does nothing more, so that a chapter needs no error handling of its own.
type story struct {
	ctx     context.Context
	cluster *cluster.Cluster
	checks  int
	err     error
}

// condition is nil if it holds, else what was seen instead.
type condition func() error

func (s *story) tell() {
	for _, chapter := range chapters {
		chapter(s)
	}
}

// end is the verdict.
func (s *story) end(started time.Time) error {
	if s.err != nil {
		return s.err
	}
	fmt.Printf("\nAll %d checks held, in %.0f s.\n", s.checks, time.Since(started).Seconds())
	return nil
}

func (s *story) chapter(title string) {
	if s.err == nil {
		fmt.Printf("\n%s\n\n", title)
	}
}

func (s *story) say(format string, arguments ...any) {
	if s.err == nil {
		fmt.Printf("  "+strings.ReplaceAll(format, "\n", "\n  ")+"\n", arguments...)
	}
}

// values fill the variables of a manifest.
type values map[string]string

// apply applies a manifest.
func (s *story) apply(name string, with values) {
	s.kubectl("apply", "-f", s.manifest(name, with))
}

// manifest writes a manifest with its variables filled in, and is its file.
func (s *story) manifest(name string, with values) string {
	content, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		s.fail(err)
		return ""
	}
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
	file := filepath.Join(s.cluster.Folder.Root(), strings.TrimSuffix(name, ".yaml")+suffix(with)+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.fail(err)
	}
	return file
}

func suffix(with values) string {
	if name := with["NAME"]; name != "" {
		return "-" + name
	}
	return ""
}

// kubectl shows a command and what it answers. It must succeed.
func (s *story) kubectl(arguments ...string) {
	if output, err := s.try(arguments...); err != nil && s.err == nil {
		s.fail(fmt.Errorf("kubectl %s: %w:\n%s", strings.Join(arguments, " "), err, output))
	}
}

// try shows a command and what it answers, be it an error.
func (s *story) try(arguments ...string) (output string, err error) {
	if s.err != nil {
		return "", s.err
	}
	fmt.Println("  $ kubectl", strings.ReplaceAll(strings.Join(arguments, " "), s.cluster.Folder.Root()+"/", ""))
	kubectl, err := s.cluster.Kubectl(s.ctx, arguments...)
	if err != nil {
		return "", err
	}
	answer, err := kubectl.CombinedOutput()
	printSome(string(answer))
	return string(answer), err
}

// background shows a command and starts it. finish waits for it to succeed.
func (s *story) background(arguments ...string) (finish func() error) {
	if s.err != nil {
		return func() error { return s.err }
	}
	fmt.Println("  $ kubectl", strings.ReplaceAll(strings.Join(arguments, " "), s.cluster.Folder.Root()+"/", ""), "&")
	kubectl, err := s.cluster.Kubectl(s.ctx, arguments...)
	if err == nil {
		err = kubectl.Start()
	}
	if err != nil {
		s.fail(err)
		return func() error { return err }
	}
	return kubectl.Wait
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

// check states something that must hold soon. about is an object, in kubectl's
// words, that a failure shows.
func (s *story) check(what, about string, holds condition) {
	if s.err != nil {
		return
	}
	started, seen := time.Now(), holds()
	for seen != nil && time.Since(started) < patience && s.ctx.Err() == nil {
		time.Sleep(interval)
		seen = holds()
	}
	if seen == nil {
		s.checks++
		fmt.Printf("  ✓ %s%s\n", what, took(started))
		return
	}
	fmt.Printf("  ✗ %s\n", what)
	if s.ctx.Err() != nil {
		s.fail(s.ctx.Err())
		return
	}
	s.fail(fmt.Errorf("it does not hold that %s: %w", what, seen))
	s.show(about)
}

func took(since time.Time) string {
	if took := time.Since(since); took >= interval {
		return fmt.Sprintf("  (%.1f s)", took.Seconds())
	}
	return ""
}

// do does what only fails if the machine does.
func (s *story) do(what func() error) {
	if s.err != nil {
		return
	}
	if err := what(); err != nil {
		s.fail(err)
	}
}

func (s *story) fail(err error) {
	if s.ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if s.err == nil {
		s.err = err
	}
}

// show prints what helps to understand a failure.
func (s *story) show(about string) {
	if kubectl, err := s.cluster.Kubectl(s.ctx, "describe", about); err == nil {
		description, _ := kubectl.CombinedOutput() // an error is in the text
		fmt.Printf("\n--- kubectl describe %s\n%s", about, description)
	}
	for _, program := range s.cluster.Programs() {
		fmt.Printf("\n--- the end of the log of %s\n%s\n", program.Name, cluster.Tail(program.LogFile, logLines))
	}
}
