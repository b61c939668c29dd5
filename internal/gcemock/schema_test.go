package gcemock_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// description is Google's own of its API, which comes with its client.
type description struct {
	Schemas   map[string]schema         `json:"schemas"`
	Resources map[string]describedCalls `json:"resources"`
}

type describedCalls struct {
	Methods map[string]describedCall `json:"methods"`
}

type describedCall struct {
	Path       string `json:"path"`
	HTTPMethod string `json:"httpMethod"`
	Response   schema `json:"response"`
}

// schema is the form of a value.
type schema struct {
	Ref        string            `json:"$ref"`
	Type       string            `json:"type"`
	Format     string            `json:"format"`
	Default    string            `json:"default"`
	Enum       []string          `json:"enum"`
	Properties map[string]schema `json:"properties"`
	Additional *schema           `json:"additionalProperties"`
	Items      *schema           `json:"items"`
}

func readDescription(t *testing.T) description {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api").Output()
	if err != nil {
		t.Fatalf("looking for the client: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "compute", "v1", "compute-api.json"))
	if err != nil {
		t.Fatal(err)
	}
	var read description
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// faultsOf lists where a value isn't what a schema says.
func (d description) faultsOf(value any, want schema, at string) []string {
	if want.Ref != "" {
		return d.faultsOf(value, d.Schemas[want.Ref], at)
	}
	switch known := value.(type) {
	case map[string]any:
		return d.faultsOfObject(known, want, at)
	case []any:
		if want.Type != "array" {
			return []string{fmt.Sprintf("%s is an array, not %s", at, want.Type)}
		}
		var faults []string
		for i, item := range known {
			faults = append(faults, d.faultsOf(item, *want.Items, fmt.Sprintf("%s[%d]", at, i))...)
		}
		return faults
	case string:
		return want.faultsOfString(known, at)
	case bool:
		if want.Type != "boolean" {
			return []string{fmt.Sprintf("%s is a boolean, not %s", at, want.Type)}
		}
	case float64:
		if want.Type != "integer" && want.Type != "number" {
			return []string{fmt.Sprintf("%s is a number, not %s", at, want.Type)}
		}
	default:
		return []string{fmt.Sprintf("%s is %v", at, value)}
	}
	return nil
}

func (d description) faultsOfObject(value map[string]any, want schema, at string) []string {
	var faults []string
	for field, inner := range value {
		form, known := want.Properties[field]
		if !known && want.Additional != nil {
			form, known = *want.Additional, true
		}
		if !known {
			faults = append(faults, fmt.Sprintf("%s has no field %s", at, field))
			continue
		}
		faults = append(faults, d.faultsOf(inner, form, at+"."+field)...)
	}
	if kind := want.Properties["kind"].Default; kind != "" && value["kind"] != kind {
		faults = append(faults, fmt.Sprintf("%s.kind is %v, not %s", at, value["kind"], kind))
	}
	return faults
}

func (want schema) faultsOfString(value, at string) []string {
	if want.Type != "string" {
		return []string{fmt.Sprintf("%s is a string, not %s", at, want.Type)}
	}
	if want.Format == "int64" || want.Format == "uint64" {
		if _, err := fmt.Sscanf(value, "%d", new(uint64)); err != nil {
			return []string{fmt.Sprintf("%s is %q, not a number", at, value)}
		}
	}
	for _, allowed := range want.Enum {
		if value == allowed {
			return nil
		}
	}
	if want.Enum != nil {
		return []string{fmt.Sprintf("%s is %q, none of %v", at, value, want.Enum)}
	}
	return nil
}
