package backend

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Parameters are the parameters of a StorageClass, typed and checked.
type Parameters struct {
	// Backend is the name of the StorageBackend.
	Backend string
	// FSType is the file system of new volumes. Empty: the StorageBackend's.
	FSType string
	// Storage has the parameters that only the storage understands.
	Storage map[string]string
}

// ParseParameters reads the parameters of a StorageClass. A missing one, and one that is neither known
// nor one of the storage's, is an error of kind Invalid: an ignored parameter would promise what no
// backend does.
func ParseParameters(parameters map[string]string, storage ...string) (Parameters, error) {
	parsed := Parameters{}
	known := slices.Concat([]string{stowagev1alpha1.BackendParameter, stowagev1alpha1.FSTypeParameter}, storage)
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		switch {
		case key == stowagev1alpha1.BackendParameter:
		case key == stowagev1alpha1.FSTypeParameter:
			parsed.FSType = parameters[key]
		case slices.Contains(storage, key):
			if parsed.Storage == nil {
				parsed.Storage = map[string]string{}
			}
			parsed.Storage[key] = parameters[key]
		default:
			return Parameters{}, Invalid.Errorf("unknown parameter %.100q: there are %s. Create the class again without it", key, listed(known))
		}
	}
	var err error
	if parsed.Backend, err = NameIn(parameters); err != nil {
		return Parameters{}, err
	}
	return parsed, nil
}

// ParseClass reads the parameters of a StorageClass of a StorageBackend: those of a cloud's disks are those
// that the object allows. Its errors are of kind Invalid.
func ParseClass(object *stowagev1alpha1.StorageBackend, parameters map[string]string) (Parameters, error) {
	if object.Spec.GCE == nil {
		return ParseParameters(parameters)
	}
	var allowed []string
	for _, name := range object.Spec.GCE.ClassParameters {
		allowed = append(allowed, string(name))
	}
	parsed, err := ParseParameters(parameters, allowed...)
	if err != nil {
		err = fmt.Errorf("%w; gce.classParameters of StorageBackend %s can allow others", err, object.Name)
	}
	return parsed, err
}

// NameIn returns the name of the StorageBackend that the parameters of a StorageClass name, or an
// error of kind Invalid. It ignores all other parameters.
func NameIn(parameters map[string]string) (string, error) {
	name := parameters[stowagev1alpha1.BackendParameter]
	if name == "" {
		return "", Invalid.Errorf("parameter %q is missing: it names a StorageBackend", stowagev1alpha1.BackendParameter)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", Invalid.Errorf("parameter %q: %.253q is no name of a StorageBackend: %s",
			stowagev1alpha1.BackendParameter, name, strings.Join(problems, ", "))
	}
	return name, nil
}

// listed names parameters, for people: "a", "b" and "c".
func listed(names []string) string {
	last := len(names) - 1
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(quoted[:last], ", ") + " and " + quoted[last]
}
