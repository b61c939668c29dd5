// Package metrics_test keeps docs/metrics.md, the rules for alerts and the dashboard in step with the
// metrics that the programs serve.
package metrics_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/stowage-dev/stowage/internal/backend/csi/measured"
	backendmetrics "github.com/stowage-dev/stowage/internal/backend/metrics"
	"github.com/stowage-dev/stowage/internal/csi/calls"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/node/localdisk/diskagent"
	"github.com/stowage-dev/stowage/internal/node/localdisk/usage"
	nodemetrics "github.com/stowage-dev/stowage/internal/nodemanager/metrics"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/internal/statemetrics"
	"github.com/stowage-dev/stowage/internal/waiting"
)

const (
	page  = "../../docs/metrics.md"
	begin = "<!-- The tables are generated: go test ./test/metrics -update -->\n"
)

var update = flag.Bool("update", false, "write the tables of docs/metrics.md")

// family is one metric, as a table has it.
type family struct{ name, kind, labels, help string }

// book is a registerer that only writes down what it is given.
type book struct {
	prometheus.Registerer
	families []family
}

func (b *book) Register(collector prometheus.Collector) error {
	kind := "gauge"
	switch collector.(type) {
	case *prometheus.HistogramVec, prometheus.Histogram:
		kind = "histogram"
	case *prometheus.CounterVec, prometheus.Counter:
		kind = "counter"
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		collector.Describe(descriptions)
		close(descriptions)
	}()
	for description := range descriptions {
		b.families = append(b.families, parse(description, kind))
	}
	return nil
}

// described is how a Desc prints itself: it has no other way to be read.
var described = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: (".*"), constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

func parse(description *prometheus.Desc, kind string) family {
	parts := described.FindStringSubmatch(description.String())
	if parts == nil {
		panic("a new form: " + description.String())
	}
	var labels []string
	for _, constant := range strings.FieldsFunc(parts[3], func(r rune) bool { return r == ',' }) {
		name, _, _ := strings.Cut(constant, "=")
		labels = append(labels, name)
	}
	labels = append(labels, strings.FieldsFunc(parts[4], func(r rune) bool { return r == ',' })...)
	var help string
	if _, err := fmt.Sscanf(parts[2], "%q", &help); err != nil {
		panic(err)
	}
	return family{name: parts[1], kind: kind, labels: strings.Join(labels, ", "), help: help}
}

// served returns what manager and node agent serve.
func served(t *testing.T) (manager, agent []family) {
	t.Helper()
	ofManager, ofAgent := &book{}, &book{}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := backendmetrics.New(ofManager)
	must(err)
	_, err = measured.New(ofManager, logr.Discard())
	must(err)
	_, err = waiting.New(ofManager, clock.RealClock{})
	must(err)
	must(statemetrics.Register(ofManager, nil, nil))
	must(program.ServeMetrics(ofManager))

	_, err = nodemetrics.New(ofAgent, mount.Kernel{})
	must(err)
	_, err = calls.New(ofAgent)
	must(err)
	must(diskagent.NewMetrics().Register(ofAgent))
	must(usage.NewMetrics().Register(ofAgent))
	must(program.ServeMetrics(ofAgent))
	return ofManager.families, ofAgent.families
}

func table(title string, of []family) string {
	slices.SortFunc(of, func(a, b family) int { return strings.Compare(a.name, b.name) })
	var text strings.Builder
	fmt.Fprintf(&text, "\n## %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", title)
	for _, each := range of {
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", each.name, each.kind, each.labels, each.help)
	}
	return text.String()
}

func TestThePageListsEveryMetricThatIsServed(t *testing.T) {
	manager, agent := served(t)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	prose, _, found := strings.Cut(string(text), begin)
	if !found {
		t.Fatalf("%s has no line %s", page, begin)
	}
	want := prose + begin + table("Of the manager", manager) + table("Of the node agent", agent)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s is stale: run go test ./test/metrics -update", page)
	}
}
