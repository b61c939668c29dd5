// Package content is what volumes show that are made of objects of the API server:
// those of type configMap, secret, downwardAPI and projected. Of finds out what that is;
// the volume types write it.
//
// It reads through a Reader, and writes nothing. What it finds is never part of an
// error: only names are.
package content

import (
	"context"
	"errors"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ErrMissing says that an object, or a key of it, isn't there, or can't be read from
// this node yet, and that the volume doesn't say that it may be missing.
var ErrMissing = errors.New("missing")

// ErrNotSupported says that this version of Stowage can't show what a volume asks for.
// Nothing but another volume cures it.
var ErrNotSupported = errors.New("not supported by this version of Stowage")

// Files are what a volume shows, by their paths in it. Nobody may change them.
type Files map[string]File

// File is one file of a volume.
type File struct {
	Data []byte
	// Mode is its permission bits.
	Mode os.FileMode
	// Owner is the user that it belongs to; nil: root.
	Owner *int64
}

// Token proves to others which service account a pod is of.
type Token struct {
	Value string
	// Renew is when a new one should be shown in its place.
	Renew time.Time
}

// Reader reads what volumes show. What it returns is shared: nobody may change it. An
// object that doesn't exist, or isn't readable from this node yet, is an error that
// wraps ErrMissing and names it. One that isn't readable wraps the API server's
// Forbidden, too: it may exist, and is waited for even where it may be missing.
type Reader interface {
	ConfigMap(ctx context.Context, pod *corev1.Pod, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, pod *corev1.Pod, name string) (*corev1.Secret, error)
	// Token is one of the pod's service account, which is worth nothing once the pod is
	// gone.
	Token(ctx context.Context, pod *corev1.Pod, projection *corev1.ServiceAccountTokenProjection) (Token, error)
	// Node is the one that the pod runs on.
	Node(ctx context.Context) (*corev1.Node, error)
}
