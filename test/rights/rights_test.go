// Package rights_test compares what config/rbac grants with what Stowage's programs asked of the API servers of all
// tests of `make test`. A denied request fails it, and so does a right that no test used, unless unused.txt has it with
// its reason. The suites of reconcilers, managers and agents run with the rights of these programs.
package rights_test

import (
	_ "embed"
	"os"
	"slices"
	"strings"
	"testing"
)

// requestsVariable names the folder with the requests of all tests. `make test` sets it once these are over.
const requestsVariable = "STOWAGE_TEST_REQUESTS"

//go:embed unused.txt
var unused string

func TestTheRightsThatAreGrantedAreThoseThatTestsUse(t *testing.T) {
	folder := os.Getenv(requestsVariable)
	if folder == "" {
		t.Skip("NOT RUN: make test runs it after all other tests")
	}
	requests, rights := readRequests(t, folder), rightsOf(t)
	problems := judge(rights, requests, unused)
	for _, problem := range problems {
		t.Error(problem)
	}
	// The summary of the tests has this line.
	t.Logf("%d kinds of requests and %d rights were compared: %d problems", len(requests), len(rights), len(problems))
}

// judge returns what is wrong: denied requests, rights that are unused, and lines of the list of unused rights that
// don't hold.
func judge(rights []right, requests map[request]bool, list string) []string {
	var problems []string
	used := map[string]bool{}
	for made := range requests {
		if made.decision == forbidden && !isNodesOwn(made) {
			problems = append(problems, "denied: "+made.String())
		}
		for _, granted := range rights {
			used[granted.String()] = used[granted.String()] || granted.covers(made)
		}
	}
	excused := map[string]bool{}
	for line := range strings.Lines(list) {
		if what, reason, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(what, "#") && reason != "" {
			excused[what] = true
			if _, granted := used[what]; !granted {
				problems = append(problems, "unused.txt names what isn't granted: "+what)
			}
		}
	}
	for what, is := range used {
		if !is && !excused[what] {
			problems = append(problems, "granted, and no test used it: "+what)
		}
	}
	slices.Sort(problems)
	return problems
}

// isNodesOwn reports whether Kubernetes itself decides on a request: a node may read claims, volumes and Secrets of its
// pods some time after these are its own.
func isNodesOwn(made request) bool { return made.of == node && made.group != "stowage.dev" }

func TestJudge(t *testing.T) {
	get := right{role: "reader", of: []identity{manager}, verb: "get", resource: "pods"}
	inCluster := get
	inCluster.role, inCluster.clusterScope = "cluster-reader", true
	made := request{of: manager, verb: "get", resource: "pods", namespace: "shop", name: "web", decision: allowed}
	byCluster, denied := made, made
	byCluster.clusterScope, denied.decision = true, forbidden
	ofNode := denied
	ofNode.of = node
	for name, test := range map[string]struct {
		requests []request
		list     string
		problems []string
	}{
		"all is used": {requests: []request{made, byCluster}},
		"a right of one scope is unused in it": {
			requests: []request{byCluster}, problems: []string{"granted, and no test used it: reader get pods"},
		},
		"a denied request uses nothing": {
			requests: []request{denied, byCluster},
			problems: []string{"denied: manager: get pods shop/web: forbidden", "granted, and no test used it: reader get pods"},
		},
		"a denied request of a node is Kubernetes' own": {requests: []request{made, byCluster, ofNode}},
		"an unused right has a reason":                  {requests: []request{byCluster}, list: "reader get pods: not asked\n"},
		"a listed right is gone": {
			requests: []request{made, byCluster}, list: "reader list pods: not asked",
			problems: []string{"unused.txt names what isn't granted: reader list pods"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			requests := map[request]bool{}
			for _, one := range test.requests {
				requests[one] = true
			}
			if got := judge([]right{get, inCluster}, requests, test.list); !slices.Equal(got, test.problems) {
				t.Errorf("got %q, want %q", got, test.problems)
			}
		})
	}
}

func TestRequestsAreReadFromLogs(t *testing.T) {
	const log = `{"verb":"patch","user":{"username":"stowage-tests"},"impersonatedUser":{"username":"system:serviceaccount:stowage-system:stowage-manager","groups":["scope:cluster"]},"objectRef":{"resource":"nodes","name":"n1","subresource":"status"},"responseStatus":{"code":403}}
{"verb":"list","user":{"username":"system:node:n1"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200}}
{"verb":"get","user":{"username":"admin"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200}}
{"verb":"get","user":{"username":"system:node:n1"},"requestURI":"/api"}
`
	requests := map[request]bool{}
	if err := addRequests(requests, strings.NewReader(log)); err != nil {
		t.Fatal(err)
	}
	want := []request{
		{of: manager, clusterScope: true, verb: "patch", resource: "nodes", subresource: "status", name: "n1", decision: forbidden},
		{of: node, verb: "list", resource: "pods", decision: allowed},
	}
	for _, one := range want {
		if !requests[one] {
			t.Errorf("%v isn't among %v", one, requests)
		}
	}
	if len(requests) != len(want) {
		t.Errorf("%d requests: %v", len(requests), requests)
	}
}
