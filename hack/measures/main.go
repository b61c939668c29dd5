// Command measures prints how large the packages of production code are and how much they run in circles, and fails
// where one is beyond its limit. What is beyond already is listed with its number in the file that is the argument: the
// number must not grow, and the line goes once it is within the limit.
//
// Tests and generated files don't count. Package lines, package files and file lines speak for themselves; methods are
// those of a type that has a method Reconcile. Cycles are uses between files of a package that run back up, in percent:
// see backward in uses.go.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
)

var limits = []struct {
	measure string
	limit   int
}{
	{"production-lines", 54_000},
	{"package-lines", 1_500},
	{"package-files", 15},
	{"cycles", 5},
	{"methods", 25},
	{"file-lines", 400},
}

// subject is what a measure is of: a package, a type, a file.
type subject struct{ measure, name string }

var errBeyond = errors.New("the measures don't hold")

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: measures FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "measures:", err)
		os.Exit(1)
	}
}

func run(list string) error {
	known, err := readList(list)
	if err != nil {
		return err
	}
	numbers, err := measureAll("./api/...", "./cmd/...", "./controllers/...", "./internal/...")
	if err != nil {
		return err
	}
	report(numbers)
	complaints := compare(numbers, known)
	for _, complaint := range complaints {
		fmt.Printf("measures: %s: %s\n", list, complaint)
	}
	if len(complaints) > 0 {
		return errBeyond
	}
	return nil
}

func readList(path string) (map[subject]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	known := map[subject]int{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var of subject
		var number int
		if _, err := fmt.Sscan(lines.Text(), &of.measure, &of.name, &number); err != nil {
			return nil, fmt.Errorf("reading %q in %s: %w", lines.Text(), path, err)
		}
		known[of] = number
	}
	return known, lines.Err()
}

func report(numbers map[subject]int) {
	for _, each := range limits {
		worst, beyond, all := subject{}, 0, 0
		for _, of := range sorted(numbers) {
			if of.measure != each.measure {
				continue
			}
			all++
			if numbers[of] > each.limit {
				beyond++
			}
			if worst.name == "" || numbers[of] > numbers[worst] {
				worst = of
			}
		}
		fmt.Printf("%-16s limit %5d, beyond %2d of %3d, most %5d: %s\n", each.measure, each.limit, beyond, all, numbers[worst], worst.name)
	}
}

// compare returns what to change in the code, or in the list.
func compare(numbers, known map[subject]int) []string {
	var complaints []string
	for _, each := range limits {
		for _, of := range sorted(numbers) {
			number, listed := numbers[of], known[of]
			switch {
			case of.measure != each.measure:
			case number > each.limit && listed == 0:
				complaints = append(complaints, fmt.Sprintf("%s of %s are %d, limit %d", of.measure, of.name, number, each.limit))
			case number > each.limit && number > listed:
				complaints = append(complaints, fmt.Sprintf("%s of %s grew from %d to %d, limit %d", of.measure, of.name, listed, number, each.limit))
			case number <= each.limit && listed != 0:
				complaints = append(complaints, fmt.Sprintf("%s of %s are within the limit: remove the line", of.measure, of.name))
			}
		}
	}
	for _, of := range sorted(known) {
		if _, measured := numbers[of]; !measured {
			complaints = append(complaints, fmt.Sprintf("%s of %s: nothing has this name: remove the line", of.measure, of.name))
		}
	}
	return complaints
}

func sorted(numbers map[subject]int) []subject {
	all := make([]subject, 0, len(numbers))
	for of := range numbers {
		all = append(all, of)
	}
	slices.SortFunc(all, func(a, b subject) int {
		return cmp.Or(cmp.Compare(a.measure, b.measure), cmp.Compare(a.name, b.name))
	})
	return all
}
