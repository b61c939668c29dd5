package environment

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

// Of is the environment of one container of a pod. Later variables hide earlier ones, and all of
// them those of envFrom.
type Of struct {
	Pod       *corev1.Pod
	Container corev1.Container
	// Reader reads the sources of variables; nil: a source is an error.
	Reader content.Reader
}

// scope is the evaluated variables of one path.
type scope struct {
	Of
	// known are values by their index in env.
	known map[int]string
}
