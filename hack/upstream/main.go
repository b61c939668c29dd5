// Command upstream plays upstream's integration tests of PersistentVolumes with
// Stowage's manager in place of upstream's controller of PersistentVolumes. With --tables
// it writes down the tables of that controller's own tests, for the specs of package
// controllers to play.
//
// The tests are those of the module k8s.io/kubernetes as go.mod requires it. Copies
// are made at build time, in which one import is another: that of the controller. All
// else is upstream's, and nothing of it is committed. What can't be played is in
// skips.txt, each with its reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
)

// suites are the packages below k8s.io/kubernetes/test/integration that are played.
var suites = []string{"volume", "volumescheduling"}

type options struct {
	repository, programs string
	run                  *regexp.Regexp
	skipped              bool
	// tables is the file that rows of upstream's tables go to; empty: play tests.
	tables string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := play(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context) error {
	parsed, err := parse()
	if err != nil {
		return err
	}
	if parsed.tables != "" {
		return writeTables(ctx, parsed)
	}
	content, err := os.ReadFile("skips.txt")
	if err != nil {
		return fmt.Errorf("reading the expected skips: %w", err)
	}
	skips, err := parseSkips(string(content))
	if err != nil {
		return err
	}
	built, err := build(ctx, parsed.output())
	if err != nil {
		return err
	}
	if err := skips.check(built); err != nil {
		return err
	}
	return runAll(ctx, parsed, built, skips)
}

func parse() (options, error) {
	var o options
	pattern := flag.String("run", "", "Regular expression of the tests to play, as suite/Test. Empty: all.")
	flag.BoolVar(&o.skipped, "skipped", false, "Play those that skips.txt has, and no others: to see whether a reason still holds.")
	flag.StringVar(&o.repository, "repository", "", "Top folder of the checkout, with bin/manager.")
	flag.StringVar(&o.programs, "programs", "", "Folder with etcd and kubectl.")
	flag.StringVar(&o.tables, "tables", "", "File to write the rows of upstream's tables of PersistentVolumes to, as JSON, in place of playing tests.")
	flag.Parse()
	if o.repository == "" || o.programs == "" {
		return o, errors.New("name the repository and the folder of programs: make integration-upstream does")
	}
	var err error
	for _, path := range []*string{&o.repository, &o.programs, &o.tables} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return o, err
		}
	}
	if o.run, err = regexp.Compile(*pattern); err != nil {
		return o, fmt.Errorf("reading --run: %w", err)
	}
	return o, nil
}

func (o options) output() string { return filepath.Join(o.repository, "bin", "upstream") }
