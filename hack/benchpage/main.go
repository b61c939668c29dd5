// Command benchpage makes a page for people of the results that `make bench` wrote as JSON: the targets, beside those of an
// earlier run, and plots of rounds, of latencies, and of cost against size. The page is one HTML file without scripts.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	results := flag.String("results", "bin/bench.json", "Results of make bench.")
	earlier := flag.String("earlier", "", "Results to compare with: a file, or a folder, of which the last by name counts. None is no error.")
	to := flag.String("to", "bin/bench.html", "The page.")
	flag.Parse()
	if err := run(*results, *earlier, *to); err != nil {
		fmt.Fprintln(os.Stderr, "benchpage:", err)
		os.Exit(1)
	}
}

func run(results, earlier, to string) error {
	now, err := read(results)
	if err != nil {
		return fmt.Errorf("reading the results (make bench writes them): %w", err)
	}
	before, err := readEarlier(earlier)
	if err != nil {
		return fmt.Errorf("reading what to compare with: %w", err)
	}
	content, err := page(now, before)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, content, 0o644); err != nil {
		return err
	}
	fmt.Println("As a page:", to)
	return nil
}

// readEarlier reads a file, or the last one of a folder; nil if there is none.
func readEarlier(path string) (*results, error) {
	info, err := os.Stat(path)
	switch {
	case path == "" || errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.IsDir():
		return read(path)
	}
	names, err := filepath.Glob(filepath.Join(path, "*.json"))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return read(slices.MaxFunc(names, cmp.Compare[string]))
}
