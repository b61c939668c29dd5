package integration_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// writes are what the manager wrote to claims and volumes, refused or not.
var writes = &counter{}

// counter keeps writes, from when they begin: a write whose effect is seen is counted already.
type counter struct {
	mu    sync.Mutex
	begun []*write
}

// write is one request, by verb and path.
type write struct {
	what, outcome string
	// repetition is a write that only says again why a claim waits.
	repetition bool
}

// count is a client configuration whose writes are counted.
func (c *counter) count(config *rest.Config) *rest.Config {
	counting := rest.CopyConfig(config)
	counting.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodGet || !strings.Contains(request.URL.Path, "/persistentvolume") {
				return next.RoundTrip(request)
			}
			begun := c.begin(request)
			response, err := next.RoundTrip(request)
			if response != nil {
				c.end(begun, response.Status)
			}
			return response, err
		})
	})
	return counting
}

func (c *counter) begin(request *http.Request) *write {
	begun := &write{what: request.Method + " " + request.URL.Path, outcome: "no answer", repetition: onlyConditions(request)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = append(c.begun, begun)
	return begun
}

func (c *counter) end(begun *write, outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	begun.outcome = outcome
}

// onlyConditions reports whether a write changes no more of a status than its conditions.
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
	c.begun = nil
}

func (c *counter) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.begun)
}

// repeated is how many writes only wrote again why a claim waits.
func (c *counter) repeated() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	repeated := 0
	for _, one := range c.begun {
		if one.repetition {
			repeated++
		}
	}
	return repeated
}

// others is how many did not.
func (c *counter) others() int { return c.total() - c.repeated() }

// accepted are the writes that were carried out, each as often as it was.
func (c *counter) accepted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var accepted []string
	for _, one := range c.begun {
		if strings.HasPrefix(one.outcome, "20") {
			accepted = append(accepted, one.what)
		}
	}
	return accepted
}

// suspects are the writes that were refused or made twice.
func (c *counter) suspects() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	times := map[string]int{}
	for _, one := range c.begun {
		times[one.what]++
	}
	var suspects []string
	for _, one := range c.begun {
		if times[one.what] > 1 || one.outcome != "200 OK" {
			suspects = append(suspects, one.what+": "+one.outcome)
		}
	}
	slices.Sort(suspects)
	return strings.Join(suspects, "\n")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
