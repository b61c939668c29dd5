package gcedriver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// sanityTime is how long one run of csi-sanity may take.
const sanityTime = 5 * time.Minute

// runSanity runs csi-sanity in a process of its own.
func (b *testbed) runSanity() (got outcome) {
	b.Helper()
	what := plan{Subject: b.subject, Endpoint: b.endpoint(), Folder: b.folder, OutcomeFile: b.path("outcome.json")}
	text, err := json.Marshal(what)
	if err != nil {
		b.Fatal(err)
	}
	b.write("plan.json", string(text))
	log, err := os.Create(filepath.Join(b.logs, "csi-sanity.log"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(b.Context(), sanityTime+startTime)
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = append(os.Environ(), planVariable+"="+b.path("plan.json"))
	command.Stdout, command.Stderr = log, log
	if err := command.Run(); err != nil {
		b.Fatalf("running csi-sanity: %v; its log is in %s", err, b.logs)
	}
	text, err = os.ReadFile(what.OutcomeFile)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil {
		b.Fatal(err)
	}
	got.subject = b.subject.Name
	return got
}

// runPlan runs csi-sanity as a plan has it, and writes the outcome. It returns the
// status of the process.
func runPlan(file string) int {
	text, err := os.ReadFile(file)
	var what plan
	if err == nil {
		err = json.Unmarshal(text, &what)
	}
	if err == nil {
		if text, err = json.Marshal(what.run()); err == nil {
			err = os.WriteFile(what.OutcomeFile, text, 0o600)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// verdict takes what Ginkgo reports to a test: the outcome has it all.
type verdict struct{}

// Fail implements ginkgo.GinkgoTestingT.
func (verdict) Fail() {}

func (p plan) run() (got outcome) {
	config := p.config()
	gomega.RegisterFailHandler(ginkgo.Fail)
	tests := sanity.GinkgoTest(&config)
	defer tests.Finalize()
	ginkgo.ReportAfterSuite("the outcome", func(report ginkgo.Report) { got = outcomeOf(report) })
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.Timeout, suite.RandomizeAllSpecs = sanityTime, true
	// Specs of the Node service need real disks on a real machine of Google's.
	suite.FocusStrings = []string{`\[Controller Server\]`, "Identity Service"}
	reporter.NoColor, reporter.Verbose = true, true
	ginkgo.RunSpecs(verdict{}, "Google's driver with disks of "+p.Subject.Name, suite, reporter)
	return got
}
