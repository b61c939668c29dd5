package apiserver

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// AuditVariable names the folder into which servers write what Stowage's identities asked of
	// them. `make test` sets it, and test/rights reads the files. Unset: they write none.
	AuditVariable = "STOWAGE_TEST_AUDIT"
	// Namespace is Stowage's own.
	Namespace = "stowage-system"
	// ClusterScope is a group of managers with --scope=cluster, on servers with rights.
	ClusterScope = "scope:cluster"

	impersonator = "stowage-tests" // rights/audit.yaml has it, too
	pollInterval = 50 * time.Millisecond
	nodeOfToken  = "authentication.kubernetes.io/node-name"
)

// Manager is the identity of a manager. Of one with --scope=cluster, ClusterScope is a group.
func Manager(groups ...string) rest.ImpersonationConfig { return account("stowage-manager", groups...) }

// Agent is the identity of the agent of a node that has a kubelet.
func Agent(node string) rest.ImpersonationConfig {
	agent := account("stowage-node-agent")
	agent.Extra = map[string][]string{nodeOfToken: {node}}
	return agent
}

func account(name string, groups ...string) rest.ImpersonationConfig {
	return rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + Namespace + ":" + name,
		Groups:   append(groups, "system:serviceaccounts", "system:serviceaccounts:"+Namespace, "system:authenticated"),
	}
}

// As returns a client configuration with an identity, of which requests are recorded. Stock servers
// don't know it.
func (s *Server) As(identity rest.ImpersonationConfig) *rest.Config {
	config := s.withToken(impersonator)
	config.Impersonate = identity
	return config
}

// record has a server record requests of Stowage's identities.
func record(server *envtest.APIServer) error {
	folder := os.Getenv(AuditVariable)
	if folder == "" {
		return nil
	}
	file, err := os.CreateTemp(folder, "requests-*.jsonl")
	if err != nil {
		return fmt.Errorf("making a log of requests: %w", err)
	}
	server.Configure().Set("audit-policy-file", filepath.Join(rights(), "audit.yaml")).Set("audit-log-path", file.Name())
	return file.Close()
}

// grant applies config/rbac, and returns when the server grants what that says.
func (s *Server) grant(assets string) error {
	admin, err := s.addUser("admin", []string{"system:masters"})
	if err != nil {
		return err
	}
	kubectl, err := admin.Kubectl()
	if err != nil {
		return fmt.Errorf("finding kubectl: %w", err)
	}
	kubectl.Path = filepath.Join(assets, "kubectl")
	if _, problem, err := kubectl.Run("apply", "--server-side", "-k", rights()); err != nil {
		said, _ := io.ReadAll(problem)
		return fmt.Errorf("granting rights: %w: %s", err, said)
	}
	for _, right := range []string{"list storagebackends --as-group=system:nodes", "create pvc --as-group=" + ClusterScope, "get secrets"} {
		arguments := append(strings.Fields("auth can-i --namespace="+Namespace+" --as="+Manager().UserName), strings.Fields(right)...)
		for deadline := time.Now().Add(startTimeout); ; <-time.After(pollInterval) {
			if _, _, err = kubectl.Run(arguments...); err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("waiting for the right to %s: %w", right, err)
			}
		}
	}
	return nil
}

func rights() string { return filepath.Join(Repository(), "test", "harness", "apiserver", "rights") }
