package main

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// quiet is for how long nobody writes before it is taken that all is done.
	quiet = time.Second
	// quietTimeout is how long that is waited for.
	quietTimeout = 2 * time.Minute
)

// writes counts API requests that write, by verb and resource, such as "PATCH
// persistentvolumes/status". Requests that failed are counted a second time
// under their status code.
type writes map[string]int

// requestLine is one counter of the API server's apiserver_request_total.
var requestLine = regexp.MustCompile(`^apiserver_request_total\{(.*)\} ([0-9.e+]+)$`)

// label is one label of a counter.
var label = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)

// ownResources are what the API server writes for itself.
var ownResources = []string{
	"", "apiservices", "endpoints", "endpointslices", "flowschemas", "leases", "prioritylevelconfigurations", "services",
}

// parseWrites reads the text of the API server's /metrics.
func parseWrites(metrics []byte) (writes, error) { return parseRequests(metrics, isWrite) }

// parseRequests counts those whose verb is wanted.
func parseRequests(metrics []byte, wanted func(verb string) bool) (writes, error) {
	counted := writes{}
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		parts := requestLine.FindStringSubmatch(lines.Text())
		if parts == nil {
			continue
		}
		labels := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(parts[1], -1) {
			labels[pair[1]] = pair[2]
		}
		if !wanted(labels["verb"]) || slices.Contains(ownResources, labels["resource"]) {
			continue
		}
		number, err := strconv.ParseFloat(parts[2], 64)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
		}
		name := labels["verb"] + " " + labels["resource"]
		if labels["subresource"] != "" {
			name += "/" + labels["subresource"]
		}
		counted[name] += int(number)
		if code := labels["code"]; !strings.HasPrefix(code, "2") {
			counted["failed "+code] += int(number)
		}
	}
	return counted, lines.Err()
}

func isWrite(verb string) bool {
	return slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, verb)
}

// isAnswered says whether a request is answered at once: all but watches are.
func isAnswered(verb string) bool { return verb != "WATCH" && verb != "CONNECT" }

// since are the writes after earlier ones.
func (w writes) since(before writes) writes {
	after := writes{}
	for name, count := range w {
		if count != before[name] {
			after[name] = count - before[name]
		}
	}
	return after
}

// total is how many requests wrote, or tried to.
func (w writes) total() int {
	sum := 0
	for name, count := range w {
		if !strings.HasPrefix(name, "failed ") {
			sum += count
		}
	}
	return sum
}

// names are in alphabetical order.
func (w writes) names() []string { return slices.Sorted(maps.Keys(w)) }

// countWrites asks the API server what was written since it started.
func (b *testbed) countWrites() (writes, error) {
	return b.countRequests(isWrite)
}

func (b *testbed) countRequests(wanted func(verb string) bool) (writes, error) {
	metrics, err := b.raw.Get().AbsPath("/metrics").DoRaw(b.ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return parseRequests(metrics, wanted)
}

// awaitQuiet waits until nobody writes any more, and counts.
func (b *testbed) awaitQuiet() (writes, error) {
	before, err := b.countWrites()
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(quietTimeout); time.Now().Before(deadline); {
		select {
		case <-b.ctx.Done():
			return nil, b.ctx.Err()
		case <-time.After(quiet):
		}
		now, err := b.countWrites()
		if err != nil || now.total() == before.total() {
			return now, err
		}
		before = now
	}
	return nil, fmt.Errorf("waiting until nobody writes: somebody still does after %s", quietTimeout)
}
