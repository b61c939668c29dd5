package v1alpha1_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestEveryFieldIsDescribed walks the generated CRDs: each field of ours has a
// description that begins with its JSON name, ends like a sentence and holds
// none of the marks that a marker in the wrong place leaves behind.
func TestEveryFieldIsDescribed(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/stowage.dev_*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("finding the four generated CRDs: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			schema := version.Schema.OpenAPIV3Schema
			if schema.Description == "" {
				t.Errorf("%s has no description", crd.Spec.Names.Kind)
			}
			for _, part := range []string{"spec", "status"} {
				checkDescription(t, crd.Spec.Names.Kind, part, schema.Properties[part])
			}
		}
	}
}

func checkDescription(t *testing.T, parent, name string, field apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	path, description := parent+"."+name, field.Description
	switch {
	case !strings.HasPrefix(description, name+" ") && !strings.HasPrefix(description, name+":"):
		t.Errorf("the description of %s must begin with %q: %q", path, name, description)
	case strings.Contains(description, "+kubebuilder") || strings.Contains(description, "+optional"):
		t.Errorf("the description of %s holds a marker: %q", path, description)
	case !strings.HasSuffix(description, ".") && !strings.HasSuffix(parent, ".conditions"): // those are Kubernetes' own type
		t.Errorf("the description of %s must end with a full stop: %q", path, description)
	}
	for child, schema := range field.Properties {
		checkDescription(t, path, child, schema)
	}
	if field.Items != nil && field.Items.Schema != nil {
		for child, schema := range field.Items.Schema.Properties {
			checkDescription(t, path, child, schema)
		}
	}
}
