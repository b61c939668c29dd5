package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func TestTheRightsThatAreAskedForAreGranted(t *testing.T) {
	for role, needs := range map[string][]string{"role.yaml": managerNeeds, "node_agent_role.yaml": agentNeeds} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "rbac", role))
		if err != nil {
			t.Fatal(err)
		}
		granted := rbacv1.ClusterRole{}
		if err := yaml.Unmarshal(text, &granted); err != nil {
			t.Fatal(err)
		}
		for _, need := range needs {
			asked := attributes(need)
			resource := asked.Resource
			if asked.Subresource != "" {
				resource += "/" + asked.Subresource
			}
			if !slices.ContainsFunc(granted.Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.Verbs, asked.Verb) && slices.Contains(rule.APIGroups, asked.Group) && slices.Contains(rule.Resources, resource)
			}) {
				t.Errorf("%s does not grant %q", role, need)
			}
		}
	}
}
