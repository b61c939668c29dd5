// Package content reads the files of volumes that project objects of the API server: those of
// type configMap, secret, downwardAPI and projected. The volume types write the files.
//
// It reads through a Reader, and writes nothing. Errors contain names, and never data.
package content

import (
	"context"
	"errors"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ErrMissing means: an object or a key that isn't optional doesn't exist, or can't be read from this
// node yet.
var ErrMissing = errors.New("missing")

// ErrNotSupported means: this version of Stowage can't serve the volume. Only another volume cures it.
var ErrNotSupported = errors.New("not supported by this version of Stowage")

// Files are a volume's files by their paths in it. They are shared: read-only.
type Files map[string]File

// File is one file of a volume.
type File struct {
	Data []byte
	// Mode is its permission bits.
	Mode os.FileMode
	// Owner is its user ID; nil: root.
	Owner *int64
}

// Token is a token of a pod's service account.
type Token struct {
	Value string
	// Renew is when it is to be replaced.
	Renew time.Time
}

// Reader reads the objects that volumes project. They are shared: read-only. For an object that
// doesn't exist, or isn't readable from this node yet, the error wraps ErrMissing and names it.
// If it isn't readable, the error wraps the API server's Forbidden, too: the object may exist,
// and is waited for even if it is optional.
type Reader interface {
	ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error)
	// Token returns a token of the pod's service account, bound to the pod.
	Token(ctx context.Context, pod *corev1.Pod, projection *corev1.ServiceAccountTokenProjection) (Token, error)
	// Node returns the pod's node.
	Node(ctx context.Context) (*corev1.Node, error)
}
