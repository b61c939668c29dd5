package snapshots

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Parameters is Stowage's own: the driver's parameters in the first call that makes the snapshots of a content, as JSON. Its
// repeats have them, too, though the class is gone, or another one has its name.
const Parameters = "stowage.dev/snapshot-parameters"

// RecordParameters records the parameters of a call on a content, in memory.
func RecordParameters(content *metav1.ObjectMeta, parameters map[string]string) error {
	if parameters == nil {
		parameters = map[string]string{}
	}
	text, err := json.Marshal(parameters)
	if err != nil {
		return fmt.Errorf("recording the parameters of a snapshot: %w", err)
	}
	metav1.SetMetaDataAnnotation(content, Parameters, string(text))
	return nil
}

// RecordedParameters returns the parameters that a content records, and whether it does. The error is of kind Conflict.
func RecordedParameters(content *metav1.ObjectMeta) (parameters map[string]string, recorded bool, err error) {
	text, recorded := content.Annotations[Parameters]
	if !recorded {
		return nil, false, nil
	}
	if err := json.Unmarshal([]byte(text), &parameters); err != nil {
		return nil, true, backend.Conflict.Errorf("the annotation %s can't be read: remove it, if its class has the parameters that it had: %w", Parameters, err)
	}
	return parameters, true, nil
}
