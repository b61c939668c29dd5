package snapshots

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stowage-dev/stowage/internal/storageclass"
)

// DeletionSecret returns the Secret of csi-snapshotter's call that deletes the snapshot of a content; none without the
// parameters that name it. Both are templates. The reference is to the object of the content, and kind what their variables begin
// with.
func DeletionSecret(class Class, call, kind, content string, ref corev1.ObjectReference) (secret types.NamespacedName, err error) {
	nameParameter, namespaceParameter := storageclass.SidecarPrefix+call+"-secret-name", storageclass.SidecarPrefix+call+"-secret-namespace"
	name, hasName := class.Parameters[nameParameter]
	namespace, hasNamespace := class.Parameters[namespaceParameter]
	switch {
	case !hasName && !hasNamespace:
		return secret, nil
	case !hasName || !hasNamespace:
		return secret, fmt.Errorf("%s %s has one of the parameters %s and %s: use a class with both, or with neither", class.Kind, class.Name, nameParameter, namespaceParameter)
	}
	values := map[string]string{kind + "content.name": content, kind + ".namespace": ref.Namespace}
	secret.Namespace, err = resolve(namespace, values, validation.IsDNS1123Label)
	if err == nil {
		values[kind+".name"] = ref.Name
		secret.Name, err = resolve(name, values, validation.IsDNS1123Subdomain)
	}
	if err != nil {
		return secret, fmt.Errorf("%s %s names no Secret: %w", class.Kind, class.Name, err)
	}
	return secret, nil
}

// resolve replaces the variables of a template, all of which must be known.
func resolve(template string, values map[string]string, problemsOf func(string) []string) (string, error) {
	var unknown []string
	text := os.Expand(template, func(variable string) string {
		value, known := values[variable]
		if !known {
			unknown = append(unknown, variable)
		}
		return value
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("%.200q has the variable %.200q, which isn't one of %s", template, unknown[0], strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	if problems := problemsOf(text); len(problems) > 0 {
		return "", fmt.Errorf("%.200q is no name: %s", text, problems[0])
	}
	return text, nil
}
