package integration_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// retelling marks writes that only tell anew why a claim waits.
const retelling = ", conditions alone"

// writes are what the manager wrote to claims and volumes, refused or not.
var writes = &counter{counts: map[string]int{}}

// counter counts writes by verb, path and outcome.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

// count is a client configuration whose writes are counted.
func (c *counter) count(config *rest.Config) *rest.Config {
	counting := rest.CopyConfig(config)
	counting.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if request.Method != http.MethodGet && strings.Contains(request.URL.Path, "/persistentvolume") {
				c.add(request, response)
			}
			return response, err
		})
	})
	return counting
}

func (c *counter) add(request *http.Request, response *http.Response) {
	outcome := "no answer"
	if response != nil {
		outcome = response.Status
	}
	if onlyConditions(request) {
		outcome += retelling
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[fmt.Sprintf("%s %s: %s", request.Method, request.URL.Path, outcome)]++
}

// onlyConditions tells whether a write changes no more of a status than its conditions:
// a claim tells anew why it waits.
func onlyConditions(request *http.Request) bool {
	if request.GetBody == nil {
		return false
	}
	body, err := request.GetBody()
	if err != nil {
		return false
	}
	var patch struct {
		Status map[string]json.RawMessage `json:"status"`
	}
	if json.NewDecoder(body).Decode(&patch) != nil || patch.Status["conditions"] == nil {
		return false
	}
	delete(patch.Status, "conditions")
	delete(patch.Status, "$setElementOrder/conditions")
	return len(patch.Status) == 0
}

func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = map[string]int{}
}

func (c *counter) total() int { return c.sum(func(string) bool { return true }) }

// retold is how many writes only told anew why a claim waits.
func (c *counter) retold() int {
	return c.sum(func(write string) bool { return strings.HasSuffix(write, retelling) })
}

// others are all writes but those.
func (c *counter) others() int { return c.total() - c.retold() }

func (c *counter) sum(counts func(write string) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for write, count := range c.counts {
		if counts(write) {
			total += count
		}
	}
	return total
}

// suspects are the writes that were refused or made twice.
func (c *counter) suspects() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	suspects := slices.Sorted(maps.Keys(c.counts))
	suspects = slices.DeleteFunc(suspects, func(write string) bool {
		return c.counts[write] == 1 && strings.HasSuffix(write, "200 OK")
	})
	return strings.Join(suspects, "\n")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
