package objects

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CSIDriver returns the object of a CSI driver, from a cache; nil if there is none.
func (r *Reader) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	driver := &storagev1.CSIDriver{}
	err := r.Cached.Get(ctx, client.ObjectKey{Name: name}, driver)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return driver, nil
}

// SecretData returns the content of a secret that a volume names, as of now. A node may read the
// secrets of its pods' volumes.
func (r *Reader) SecretData(ctx context.Context, reference corev1.SecretReference) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}, secret); err != nil {
		return nil, err
	}
	data := make(map[string]string, len(secret.Data))
	for key, value := range secret.Data {
		data[key] = string(value)
	}
	return data, nil
}

// IssuedToken returns a token of a pod's service account for a CSI driver, as the API server issued
// it. It is renewed in time, as tokens in volumes are.
func (r *Reader) IssuedToken(ctx context.Context, pod *corev1.Pod, request storagev1.TokenRequest) (authenticationv1.TokenRequestStatus, error) {
	token, err := r.tokens.current(ctx, pod, tokenKey{request.Audience, ptr.Deref(request.ExpirationSeconds, 0)})
	if err != nil {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("audience %q: %w", request.Audience, err)
	}
	return authenticationv1.TokenRequestStatus{Token: token.Value, ExpirationTimestamp: metav1.NewTime(token.expires)}, nil
}
