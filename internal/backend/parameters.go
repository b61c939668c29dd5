package backend

import (
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
}

// ParseParameters reads the parameters of a StorageClass. A missing or unknown one is an error of
// kind Invalid: an ignored parameter would promise what no backend does.
func ParseParameters(parameters map[string]string) (Parameters, error) {
	parsed := Parameters{}
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		switch key {
		case stowagev1alpha1.BackendParameter:
			parsed.Backend = parameters[key]
		case stowagev1alpha1.FSTypeParameter:
			parsed.FSType = parameters[key]
		default:
			return Parameters{}, Invalid.Errorf("unknown parameter %q: there are %q and %q. Create the class again without it",
				key, stowagev1alpha1.BackendParameter, stowagev1alpha1.FSTypeParameter)
		}
	}
	if parsed.Backend == "" {
		return Parameters{}, Invalid.Errorf("parameter %q is missing: it names a StorageBackend", stowagev1alpha1.BackendParameter)
	}
	if problems := validation.IsDNS1123Subdomain(parsed.Backend); len(problems) > 0 {
		return Parameters{}, Invalid.Errorf("parameter %q: %q is no name of a StorageBackend: %s",
			stowagev1alpha1.BackendParameter, parsed.Backend, strings.Join(problems, ", "))
	}
	return parsed, nil
}
