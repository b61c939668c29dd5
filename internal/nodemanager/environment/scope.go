package environment

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

// Of is the environment of one container of a pod, as it is declared: later variables
// hide earlier ones, and all of them those of envFrom.
type Of struct {
	Pod       *corev1.Pod
	Container corev1.Container
	// Reader reads what variables are taken from; nil: those are an error.
	Reader content.Reader
}

// scope is the variables that were found out for one path.
type scope struct {
	Of
	// known is values by their index in env.
	known map[int]string
}
