package program

import (
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Scheme knows the kinds of Kubernetes and Stowage, snapshots, and what lets a namespace refer to another.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, stowagev1alpha1.AddToScheme, snapshotv1.AddToScheme, groupsnapshotv1.AddToScheme, gatewayv1beta1.Install} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	return scheme, nil
}
