package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// quiet is for how long nothing is written before all is taken to be done.
	quiet        = time.Second
	quietTimeout = 2 * time.Minute

	requestsMetric = "apiserver_request_total"
	// failed marks requests that failed: they are counted twice, the second time under
	// a name such as "failed PATCH persistentvolumes 409".
	failed = "failed "
)

// requests counts API requests by verb and resource, such as "PATCH
// persistentvolumes/status".
type requests map[string]int

// ownResources are what the API server writes for itself.
var ownResources = []string{
	"", "apiservices", "endpoints", "endpointslices", "flowschemas", "leases", "prioritylevelconfigurations", "services",
}

var (
	writingVerbs = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
	// lastingVerbs are those of requests that are not answered at once.
	lastingVerbs = []string{"WATCH", "CONNECT"}
)

func parseRequests(metrics io.Reader) (requests, error) {
	families, err := parseMetrics(metrics, requestsMetric)
	if err != nil {
		return nil, err
	}
	counted := requests{}
	for _, metric := range families[requestsMetric].GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if slices.Contains(lastingVerbs, labels["verb"]) || slices.Contains(ownResources, labels["resource"]) {
			continue
		}
		name := labels["verb"] + " " + labels["resource"]
		if labels["subresource"] != "" {
			name += "/" + labels["subresource"]
		}
		number := int(metric.GetUntyped().GetValue())
		counted[name] += number
		if code := labels["code"]; !strings.HasPrefix(code, "2") {
			counted[failed+name+" "+code] += number
		}
	}
	return counted, nil
}

// parseMetrics reads some metrics of many: the others are not worth the CPU time.
func parseMetrics(metrics io.Reader, names ...string) (map[string]*dto.MetricFamily, error) {
	wanted := &bytes.Buffer{}
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		end := bytes.IndexAny(lines.Bytes(), "{ ")
		if end > 0 && slices.Contains(names, string(lines.Bytes()[:end])) {
			wanted.Write(lines.Bytes())
			wanted.WriteByte('\n')
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(wanted)
	if err = errors.Join(lines.Err(), err); err != nil {
		return nil, fmt.Errorf("parsing metrics: %w", err)
	}
	return families, nil
}

func (r requests) since(before requests) requests {
	after := requests{}
	for name, count := range r {
		if count != before[name] {
			after[name] = count - before[name]
		}
	}
	return after
}

// writes are those requests that write, or tried to.
func (r requests) writes() requests {
	writing := maps.Clone(r)
	maps.DeleteFunc(writing, func(name string, _ int) bool {
		verb, _, _ := strings.Cut(strings.TrimPrefix(name, failed), " ")
		return !slices.Contains(writingVerbs, verb)
	})
	return writing
}

// total counts requests; with resources, those to these alone.
func (r requests) total(resources ...string) int {
	sum := 0
	for name, count := range r {
		_, resource, _ := strings.Cut(name, " ")
		resource, _, _ = strings.Cut(resource, "/")
		if !strings.HasPrefix(name, failed) && (len(resources) == 0 || slices.Contains(resources, resource)) {
			sum += count
		}
	}
	return sum
}

func (b *testbed) countRequests() (requests, error) {
	metrics, err := b.raw.Get().AbsPath("/metrics").DoRaw(b.ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return parseRequests(bytes.NewReader(metrics))
}

func (b *testbed) awaitQuiet() (requests, error) {
	var now requests
	err := wait.PollUntilContextTimeout(b.ctx, quiet, quietTimeout, true, func(context.Context) (bool, error) {
		before := now
		var err error
		now, err = b.countRequests()
		return before != nil && now.writes().total() == before.writes().total(), err
	})
	if err != nil {
		return nil, fmt.Errorf("waiting until nothing is written: %w", err)
	}
	return now, nil
}

// readMetrics reads metrics of the program that serves them at an address: of each the sum, whatever its labels.
func readMetrics(ctx context.Context, address string, names ...string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the manager's metrics: %w", err)
	}
	defer response.Body.Close()
	families, err := parseMetrics(response.Body, names...)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for _, name := range names {
		if len(families[name].GetMetric()) == 0 {
			return nil, fmt.Errorf("reading the manager's metrics: it has no %s", name)
		}
		for _, metric := range families[name].GetMetric() {
			values[name] += metric.GetUntyped().GetValue()
		}
	}
	return values, nil
}
