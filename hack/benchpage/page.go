package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"

	"gonum.org/v1/plot/plotter"
)

//go:embed page.html.tmpl
var layout string

// row is a target, and what was measured before.
type row struct {
	target
	Verdict, Before string
}

type picture struct {
	Title string
	SVG   template.HTML
}

// page makes the page of results. Earlier may be nil.
func page(now, earlier *results) ([]byte, error) {
	pictures, err := pictures(now, earlier)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New("page").Parse(layout)
	if err != nil {
		return nil, fmt.Errorf("parsing the page's layout: %w", err)
	}
	made := &bytes.Buffer{}
	err = parsed.Execute(made, struct {
		Now, Earlier *results
		Rows         []row
		Pictures     []picture
	}{now, earlier, rows(now, earlier), pictures})
	return made.Bytes(), err
}

func rows(now, earlier *results) []row {
	before := map[string]string{}
	if earlier != nil {
		for _, one := range earlier.Targets {
			before[one.Name] = one.Measured
		}
	}
	rows := make([]row, len(now.Targets))
	for i, one := range now.Targets {
		rows[i] = row{one, one.verdict(), before[one.Name]}
	}
	return rows
}

// pictures are the plots: rounds and latencies of each case, and costs where there are several sizes.
func pictures(now, earlier *results) ([]picture, error) {
	var all []picture
	add := func(title, svg string, err error) error {
		all = append(all, picture{title, template.HTML(svg)}) // of gonum/plot, which escapes texts
		return err
	}
	for _, of := range groupBy(now.Results, caseOf) {
		var before []result
		if earlier != nil {
			before = slices.DeleteFunc(slices.Clone(earlier.Results), func(r result) bool { return caseOf(r) != of.name })
		}
		svg, err := speeds(of.results, before)
		if err := add(of.name+": speed of each round", svg, err); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(of.results, func(r result) bool { return r.Latency.P50 < r.Latency.Max }) {
			continue
		}
		svg, err = latencies(of.results) // of one claim alone there is nothing to see
		if err := add(of.name+": latency, last round", svg, err); err != nil {
			return nil, err
		}
	}
	for _, of := range groupBy(now.Results, func(r result) string { return r.Benchmark + ", " + r.Case }) {
		lines := linesOf(of.results)
		if len(lines) == 0 {
			continue
		}
		svg, err := costs("n", "CPU, ms each", lines)
		if err := add(of.name+": cost against size", svg, err); err != nil {
			return nil, err
		}
	}
	if len(now.Events) > 1 {
		svg, err := costs("attached volumes", "CPU, ms", linesOfEvents(now.Events))
		if err := add("node-event: cost of an event against the size of the cluster", svg, err); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func caseOf(r result) string { return fmt.Sprintf("%s, %s, n = %d", r.Benchmark, r.Case, r.N) }

// linesOf are the costs of each program that was measured at several sizes.
func linesOf(all []result) []line {
	var lines []line
	for _, program := range groupBy(all, func(r result) string { return r.Program }) {
		points := map[int][]float64{}
		for _, one := range program.results {
			points[one.N] = append(points[one.N], one.CPUEach)
		}
		if len(points) < 2 {
			continue
		}
		of := line{name: program.name}
		for n, values := range points {
			slices.Sort(values)
			of.points = append(of.points, plotter.XY{X: float64(n), Y: values[len(values)/2]})
		}
		slices.SortFunc(of.points, func(a, b plotter.XY) int { return int(a.X - b.X) })
		lines = append(lines, of)
	}
	return lines
}

func linesOfEvents(events []event) []line {
	cycle, beat := line{name: "a pod comes and goes"}, line{name: "a node's status"}
	for _, one := range events {
		cycle.points = append(cycle.points, plotter.XY{X: float64(one.Volumes), Y: one.Cycle})
		beat.points = append(beat.points, plotter.XY{X: float64(one.Volumes), Y: one.Beat})
	}
	return []line{cycle, beat}
}
