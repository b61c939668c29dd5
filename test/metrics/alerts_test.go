package metrics_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	rulesFile = "../../config/components/prometheus/rules.yaml"
	runbook   = "../../docs/runbook.md"
)

// prometheusRule is what the tests need of a PrometheusRule.
type prometheusRule struct {
	Spec struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) (rules []rule, file prometheusRule) {
	t.Helper()
	if err := yaml.UnmarshalStrict(read(t, rulesFile), &struct {
		APIVersion, Kind string
		Metadata         map[string]any
		*prometheusRule
	}{prometheusRule: &file}); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Spec.Groups {
		rules = append(rules, group.Rules...)
	}
	if len(rules) == 0 {
		t.Fatal("no alert was read")
	}
	return rules, file
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// promtool returns the path of Prometheus' own tool, in whose absence a test is skipped.
func promtool(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"../../bin/promtool", "promtool"} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Skip("promtool isn't there: run make bin/promtool, or install Debian's package prometheus")
	return ""
}

func TestEachAlertFiresAndNoneBeforeItsTime(t *testing.T) {
	tool := promtool(t)
	_, file := alerts(t)
	folder := t.TempDir()
	groups, err := yaml.Marshal(file.Spec)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"rules.yaml": groups, "alerts.yaml": read(t, "testdata/alerts.yaml")} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, arguments := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "alerts.yaml"}} {
		command := exec.CommandContext(t.Context(), tool, arguments...)
		if !filepath.IsAbs(tool) {
			command.Path, _ = filepath.Abs(tool)
		}
		command.Dir = folder
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(arguments, " "), err, output)
		}
	}
}

func TestEachAlertIsTestedAndHasARunbook(t *testing.T) {
	rules, _ := alerts(t)
	if len(rules) < 8 || len(rules) > 12 {
		t.Errorf("there are %d alerts: more than twelve are read by no one, fewer than eight miss something", len(rules))
	}
	tests, book := string(read(t, "testdata/alerts.yaml")), string(read(t, runbook))
	for _, each := range rules {
		if !strings.Contains(tests, `ALERTS{alertname="`+each.Alert+`", alertstate="firing"`) {
			t.Errorf("testdata/alerts.yaml does not make %s fire", each.Alert)
		}
		if !strings.Contains(book, "\n## "+each.Alert+"\n") {
			t.Errorf("%s has no heading %s", runbook, each.Alert)
		}
		if !strings.HasSuffix(each.Annotations["runbook_url"], "/docs/runbook.md#"+strings.ToLower(each.Alert)) {
			t.Errorf("%s leads to %s", each.Alert, each.Annotations["runbook_url"])
		}
	}
}

var metricName = regexp.MustCompile(`\b(?:stowage|csi_plugin|csi_sidecar|kubelet_volume_stats)_[a-z_]+`)

// checkServed reports each metric in a text that no program serves.
func checkServed(t *testing.T, where, text string) {
	t.Helper()
	manager, agent := served(t)
	all := slices.Concat(manager, agent)
	for _, name := range metricName.FindAllString(text, -1) {
		known := slices.ContainsFunc(all, func(of family) bool {
			suffix, begins := strings.CutPrefix(name, of.name)
			return begins && (suffix == "" || of.kind == "histogram" && slices.Contains([]string{"_bucket", "_sum", "_count"}, suffix))
		})
		if !known {
			t.Errorf("%s reads %s, which nothing serves", where, name)
		}
	}
}

func TestAlertsReadOnlyMetricsThatAreServed(t *testing.T) {
	rules, _ := alerts(t)
	for _, each := range rules {
		checkServed(t, each.Alert, each.Expr)
	}
}

func TestTheDashboardReadsOnlyMetricsThatAreServed(t *testing.T) {
	const dashboard = "../../config/components/grafana/dashboard.json"
	var shown struct {
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	if err := yaml.Unmarshal(read(t, dashboard), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Panels) == 0 {
		t.Fatal("there is no panel")
	}
	for _, panel := range shown.Panels {
		if panel.Title == "" || panel.Description == "" || len(panel.Targets) == 0 {
			t.Errorf("a panel has no title, description or query: %+v", panel)
		}
		for _, target := range panel.Targets {
			checkServed(t, panel.Title, target.Expr)
		}
	}
}
