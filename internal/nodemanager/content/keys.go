package content

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

// object is a ConfigMap or Secret, and what a volume projects of it.
type object struct {
	// what it is, for errors: its kind, namespace and name.
	what string
	data map[string][]byte
	// items are the projected keys; none: all.
	items []corev1.KeyToPath
	// optional: it, and its keys, may be missing.
	optional bool
}

func (c *collector) addConfigMap(ctx context.Context, source *corev1.ConfigMapProjection) error {
	projected := object{
		what: "configMap " + c.pod.Namespace + "/" + source.Name, data: map[string][]byte{},
		items: source.Items, optional: ptr.Deref(source.Optional, false),
	}
	configMap, err := c.reader.ConfigMap(ctx, c.pod, source.Name)
	if err != nil {
		return c.addMissing(projected, err)
	}
	maps.Copy(projected.data, configMap.BinaryData)
	for key, text := range configMap.Data {
		projected.data[key] = []byte(text)
	}
	return c.addKeys(projected)
}

func (c *collector) addSecret(ctx context.Context, source *corev1.SecretProjection) error {
	projected := object{
		what:  "secret " + c.pod.Namespace + "/" + source.Name,
		items: source.Items, optional: ptr.Deref(source.Optional, false),
	}
	secret, err := c.reader.Secret(ctx, c.pod, source.Name)
	if err != nil {
		return c.addMissing(projected, err)
	}
	projected.data = secret.Data
	return c.addKeys(projected)
}

// addMissing adds nothing of a missing object that is optional.
func (c *collector) addMissing(projected object, err error) error {
	switch {
	case !errors.Is(err, ErrMissing) || apierrors.IsForbidden(err):
		return err
	case projected.optional:
		return nil
	default:
		return &missingError{projected.what + " doesn't exist: create it, or set optional: true"}
	}
}

func (c *collector) addKeys(projected object) error {
	if len(projected.items) == 0 {
		for key, data := range projected.data {
			if err := c.put(key, found{File: c.file(data, nil, nil), origin: originOf(projected, key)}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, item := range projected.items {
		data, exists := projected.data[item.Key]
		if !exists && projected.optional {
			continue
		}
		if !exists {
			return &missingError{fmt.Sprintf("%s has no key %s: add it, or set optional: true", projected.what, item.Key)}
		}
		file := found{File: c.file(data, item.Mode, item.User), origin: originOf(projected, item.Key), chosen: true}
		if err := c.put(item.Path, file); err != nil {
			return err
		}
	}
	return nil
}

func originOf(projected object, key string) string {
	return "key " + key + " of " + projected.what
}

type missingError struct{ message string }

func (e *missingError) Error() string { return e.message }

// Unwrap makes it an ErrMissing.
func (*missingError) Unwrap() error { return ErrMissing }
