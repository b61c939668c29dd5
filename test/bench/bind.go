package main

import (
	"fmt"
	"os"
	"slices"
)

// measureBind sends programs through the workloads. On the workload identical the
// program and the bare client take turns; the others are run once.
func (b *testbed) measureBind(o options, report *report) error {
	if err := b.measureStart(b.subject); err != nil {
		return fmt.Errorf("starting %s: %w", b.subject.name, err)
	}
	report.printRoundHeader(os.Stdout)
	for _, n := range slices.Sorted(slices.Values(o.sizes)) {
		for _, name := range o.workloads {
			w, err := workloadNamed(name)
			if err != nil {
				return err
			}
			if err := b.measureWorkload(w, n, o.rounds, report); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *testbed) measureWorkload(w workload, n, rounds int, report *report) error {
	contenders := []contender{b.subject}
	if w.name == workloads[0].name {
		contenders = append(contenders, b.bare)
	} else {
		rounds = 1
	}
	for range rounds {
		for _, c := range contenders {
			result, err := b.round(c, w, n)
			if err != nil {
				return err
			}
			report.addRound(os.Stdout, result)
		}
	}
	return nil
}
