package reference_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const securityPage = "docs/security.md"

// rowsOf returns the first cells of the rows between a marker of docs/security.md and its end, each with
// whether the last cell, the reason, has a text.
func rowsOf(t *testing.T, marker string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, securityPage))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, began := strings.Cut(string(text), "<!-- "+marker+": test/reference checks the rows -->\n")
	table, _, ended := strings.Cut(rest, "<!-- end of "+marker+" -->\n")
	if !began || !ended {
		t.Fatalf("%s has no table %s", securityPage, marker)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | "); strings.HasPrefix(line, "| `") {
			reason := strings.TrimSpace(cells[len(cells)-1])
			rows[strings.TrimSpace(strings.Join(cells[:len(cells)-1], " | "))] = reason != ""
		}
	}
	return rows
}

// checkRows compares what the manifests have with a table.
func checkRows(t *testing.T, marker string, want []string) {
	t.Helper()
	rows := rowsOf(t, marker)
	for _, each := range want {
		if explained := rows[each]; !explained {
			t.Errorf("%s, table %s, doesn't explain: | %s | why |", securityPage, marker, each)
		}
		delete(rows, each)
	}
	for each := range rows {
		t.Errorf("%s, table %s, has what no manifest has: %s", securityPage, marker, each)
	}
}

// manifests decodes the documents of one kind in a folder.
func manifests[T any](t *testing.T, folder, kind string) (found []T) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq("\n"+string(text), "\n---\n") {
			if !strings.Contains("\n"+document, "\nkind: "+kind+"\n") {
				continue
			}
			var object T
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			found = append(found, object)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("%s has no %s", folder, kind)
	}
	return found
}

// rightsOf returns the rows of a role's rules.
func rightsOf(role string, rules []rbacv1.PolicyRule) (rows []string) {
	row := func(what string, rule rbacv1.PolicyRule) {
		if len(rule.ResourceNames) > 0 {
			what += " " + strings.Join(rule.ResourceNames, ", ")
		}
		rows = append(rows, "`"+role+"` | `"+what+"` | "+strings.Join(slices.Sorted(slices.Values(rule.Verbs)), ", "))
	}
	for _, rule := range rules {
		for _, url := range rule.NonResourceURLs {
			row(url, rule)
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if group != "" {
					resource += "." + group
				}
				row(resource, rule)
			}
		}
	}
	return rows
}

func TestEveryRightIsExplained(t *testing.T) {
	var rows []string
	for _, role := range manifests[rbacv1.ClusterRole](t, "config/rbac", "ClusterRole") {
		rows = append(rows, rightsOf(role.Name, role.Rules)...)
	}
	for _, role := range manifests[rbacv1.Role](t, "config/rbac", "Role") {
		rows = append(rows, rightsOf(role.Name+" in "+role.Namespace, role.Rules)...)
	}
	checkRows(t, "rights", rows)
}

// privilegesOf returns the rows of what a pod has of its node, and of what it gives up.
func privilegesOf(t *testing.T, pod corev1.PodSpec) (rows []string) {
	t.Helper()
	rows = []string{fmt.Sprintf("`hostNetwork: %t`", pod.HostNetwork), fmt.Sprintf("`hostPID: %t`", pod.HostPID), fmt.Sprintf("`hostIPC: %t`", pod.HostIPC)}
	rows = append(rows, flat(t, "pod", pod.SecurityContext)...)
	for _, container := range pod.Containers {
		rows = append(rows, flat(t, "container", container.SecurityContext)...)
		for _, mount := range container.VolumeMounts {
			at := slices.IndexFunc(pod.Volumes, func(volume corev1.Volume) bool { return volume.Name == mount.Name })
			row := fmt.Sprintf("mount %s", mount.MountPath)
			if at >= 0 && pod.Volumes[at].HostPath != nil {
				row += fmt.Sprintf(" of host path %s, %s", pod.Volumes[at].HostPath.Path, *pod.Volumes[at].HostPath.Type)
			}
			if mount.MountPropagation != nil {
				row += ", " + string(*mount.MountPropagation)
			}
			if mount.ReadOnly {
				row += ", read-only"
			}
			rows = append(rows, "`"+row+"`")
		}
	}
	return rows
}

// flat returns a row for each field of a security context.
func flat(t *testing.T, of string, value any) (rows []string) {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for name, field := range fields {
		rows = append(rows, fmt.Sprintf("`%s: %s: %s`", of, name, strings.ReplaceAll(fmt.Sprint(field), "map", "")))
	}
	return rows
}

func TestEveryPrivilegeOfTheNodeAgentIsExplained(t *testing.T) {
	checkRows(t, "privileges of the node agent", privilegesOf(t, manifests[appsv1.DaemonSet](t, "config/node", "DaemonSet")[0].Spec.Template.Spec))
}

func TestEveryPrivilegeOfTheManagerIsExplained(t *testing.T) {
	checkRows(t, "privileges of the manager", privilegesOf(t, manifests[appsv1.Deployment](t, "config/manager", "Deployment")[0].Spec.Template.Spec))
}
