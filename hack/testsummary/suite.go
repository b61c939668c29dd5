package main

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

const notChosen = "left out by a filter"

func (r *results) readSuite(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var suites []types.Report
	if err := json.Unmarshal(content, &suites); err != nil {
		return err
	}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			r.readSpec(spec)
		}
	}
	return nil
}

func (r *results) readSpec(spec types.SpecReport) {
	name := strings.TrimSpace(strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " "))
	if name == "" {
		name = spec.LeafNodeType.String()
	}
	switch {
	case spec.State != types.SpecStateSkipped:
		r.tests = append(r.tests, timed{name, spec.RunTime})
	case spec.Failure.Message != "":
		r.skipped[spec.Failure.Message]++
	default:
		r.skipped[notChosen]++
	}
	if r.countsSpecs && spec.LeafNodeType == types.NodeTypeIt {
		r.summary = r.plus(outcomeOf(spec.State))
	}
	if spec.NumAttempts > 1 && spec.State == types.SpecStatePassed {
		r.retried = append(r.retried, name)
	}
}

func outcomeOf(state types.SpecState) summary {
	switch {
	case state == types.SpecStatePassed:
		return summary{passed: 1}
	case state.Is(types.SpecStateSkipped | types.SpecStatePending):
		return summary{skipped: 1}
	default:
		return summary{failed: 1}
	}
}
