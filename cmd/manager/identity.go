package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	identityPoll = time.Second
	// identityTimeout is how long a control plane that has just started may take to create its
	// namespaces.
	identityTimeout = 30 * time.Second
)

// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get

// clusterIdentity distinguishes this cluster from others that use the same storage: the UID of
// the namespace kube-system, which lives as long as the cluster does.
func clusterIdentity(ctx context.Context, reader client.Reader) (types.UID, error) {
	namespace := &corev1.Namespace{}
	err := wait.PollUntilContextTimeout(ctx, identityPoll, identityTimeout, true, func(ctx context.Context) (bool, error) {
		err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace)
		return err == nil, client.IgnoreNotFound(err)
	})
	switch {
	case wait.Interrupted(err):
		return "", fmt.Errorf("finding out which cluster this is: there is no namespace %s", metav1.NamespaceSystem)
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("finding out which cluster this is (config/rbac has a role that may): %w", err)
	case err != nil:
		return "", fmt.Errorf("finding out which cluster this is: %w", err)
	}
	return namespace.UID, nil
}
