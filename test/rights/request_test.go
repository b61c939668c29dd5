package rights_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// identity is whose right a request needs: a service account of Stowage, or a node, which is the agent of a node
// without a kubelet.
type identity string

const (
	manager identity = "manager"
	agent   identity = "node-agent"
	node    identity = "node"
)

// request is one that an API server recorded, without what makes it different from others of its kind.
type request struct {
	of identity
	// clusterScope is whether a manager with --scope=cluster made it.
	clusterScope                                                  bool
	verb, group, resource, subresource, namespace, name, decision string
}

func (r request) String() string {
	scope := ""
	if r.clusterScope {
		scope = ", --scope=cluster"
	}
	return fmt.Sprintf("%s%s: %s %s %s/%s: %s", r.of, scope, r.verb, target(r.group, r.resource, r.subresource), r.namespace, r.name, r.decision)
}

const (
	allowed = "allowed"
	// forbidden is what no rule allows. What an admission plug-in refuses has the same status.
	forbidden = "forbidden"
)

// entry is what is read of an entry of an API server's log, audit.k8s.io/v1.
type entry struct {
	Verb             string
	User             user
	ImpersonatedUser *user
	ObjectRef        *struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus   struct{ Code int }
}

type user struct {
	Username string
	Groups   []string
}

// requestOf returns what an entry of the log says of a request, and whether an identity of Stowage made it.
func requestOf(of entry) (request, bool) {
	by := of.User
	if of.ImpersonatedUser != nil {
		by = *of.ImpersonatedUser
	}
	made := request{verb: of.Verb, clusterScope: slices.Contains(by.Groups, apiserver.ClusterScope), decision: allowed}
	switch {
	case by.Username == apiserver.Manager().UserName:
		made.of = manager
	case by.Username == apiserver.Agent("").UserName:
		made.of = agent
	case strings.HasPrefix(by.Username, "system:node:"):
		made.of = node
	default:
		return request{}, false
	}
	if of.ObjectRef == nil {
		return request{}, false
	}
	made.group, made.resource, made.subresource = of.ObjectRef.APIGroup, of.ObjectRef.Resource, of.ObjectRef.Subresource
	made.namespace, made.name = of.ObjectRef.Namespace, of.ObjectRef.Name
	if of.ResponseStatus.Code == http.StatusForbidden {
		made.decision = forbidden
	}
	return made, true
}

// readRequests reads the logs in a folder.
func readRequests(t *testing.T, folder string) map[request]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no logs of requests in %s (%v)", folder, err)
	}
	all := map[request]bool{}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := addRequests(all, file); err != nil {
			t.Fatalf("reading %s: %v", path, err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func addRequests(to map[request]bool, log io.Reader) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		one := entry{}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return err
		}
		if made, ours := requestOf(one); ours {
			to[made] = true
		}
	}
	return lines.Err()
}
