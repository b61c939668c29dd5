package rights_test

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
)

// right is one verb on one resource, that a role grants.
type right struct {
	role string
	// clusterScope is whether only config/standalone grants it.
	clusterScope bool
	// of are the identities that the role is bound to.
	of []identity
	// namespace and name are empty if the right is to all.
	verb, group, resource, namespace, name string
}

// String is how unused.txt names it.
func (r right) String() string {
	return r.role + " " + r.verb + " " + target(r.group, r.resource, "")
}

func target(group, resource, subresource string) string {
	if subresource != "" {
		resource += "/" + subresource
	}
	if group != "" {
		resource += "." + group
	}
	return resource
}

// covers reports whether a request needed the right. A watch stands for a list, too: an informer lists where the API server
// can't begin a watch with all objects.
func (r right) covers(made request) bool {
	resource := made.resource
	if made.subresource != "" {
		resource += "/" + made.subresource
	}
	// A manager of the other scope needs what config/default grants, too: it proves nothing of the right.
	inScope := made.of != manager || made.clusterScope == r.clusterScope
	return inScope && made.decision == allowed && slices.Contains(r.of, made.of) &&
		(r.verb == made.verb || r.verb == "list" && made.verb == "watch") && r.group == made.group && r.resource == resource &&
		(r.namespace == "" || r.namespace == made.namespace) && (r.name == "" || r.name == made.name)
}

// rightsOf are those that config/standalone grants. What config/default does not grant is of the scope cluster.
func rightsOf(t *testing.T) []right {
	t.Helper()
	inDefault := map[string]bool{}
	for _, object := range build(t, "default") {
		inDefault[object.GetKind()+" "+object.GetName()] = true
	}
	all := build(t, "standalone")
	bound := map[string][]identity{}
	for _, object := range all {
		if object.GetKind() == "ClusterRoleBinding" || object.GetKind() == "RoleBinding" {
			binding := converted[rbacv1.ClusterRoleBinding](t, object)
			role := binding.RoleRef.Kind + " " + binding.RoleRef.Name
			bound[role] = append(bound[role], identitiesOf(binding.Subjects)...)
		}
	}
	var rights []right
	for _, object := range all {
		name := object.GetKind() + " " + object.GetName()
		if object.GetKind() == "ClusterRole" || object.GetKind() == "Role" {
			role := converted[rbacv1.ClusterRole](t, object)
			granted := right{role: role.Name, clusterScope: !inDefault[name], of: bound[name], namespace: role.Namespace}
			rights = append(rights, granted.by(role.Rules)...)
		}
	}
	return rights
}

func identitiesOf(subjects []rbacv1.Subject) []identity {
	var of []identity
	for _, subject := range subjects {
		switch subject.Name {
		case "stowage-manager":
			of = append(of, manager)
		case "stowage-node-agent":
			of = append(of, agent)
		case "system:nodes":
			of = append(of, node)
		}
	}
	return of
}

// by are the rights of a role that rules grant. Rules of URLs, which clients of metrics need, aren't resources.
func (r right) by(rules []rbacv1.PolicyRule) []right {
	var rights []right
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, r.verb = range rule.Verbs {
			for _, r.group = range rule.APIGroups {
				for _, r.resource = range rule.Resources {
					for _, r.name = range names {
						rights = append(rights, r)
					}
				}
			}
		}
	}
	return rights
}

// build is what `kubectl kustomize` makes of a folder of config/.
func build(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	kubectl, err := apiserver.Binary("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), kubectl, "kustomize", filepath.Join(apiserver.Repository(), "config", folder)).Output()
	if err != nil {
		t.Fatalf("building config/%s: %v", folder, err)
	}
	var objects []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		err := reader.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

func converted[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		t.Fatal(err)
	}
	return typed
}
