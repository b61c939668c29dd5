package content

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// object is a ConfigMap or Secret, and what a volume shows of it.
type object struct {
	// what it is, for errors: its kind, namespace and name.
	what string
	data map[string][]byte
	// items are the keys that are shown; none: all.
	items []corev1.KeyToPath
	// optional: it, and its keys, may be missing.
	optional bool
}

func (g *gathering) addConfigMap(ctx context.Context, source *corev1.ConfigMapProjection) error {
	shown := object{
		what: "configMap " + g.pod.Namespace + "/" + source.Name, data: map[string][]byte{},
		items: source.Items, optional: orDefault(source.Optional, false),
	}
	configMap, err := g.reader.ConfigMap(ctx, g.pod, source.Name)
	if err != nil {
		return g.addMissing(shown, err)
	}
	maps.Copy(shown.data, configMap.BinaryData)
	for key, text := range configMap.Data {
		shown.data[key] = []byte(text)
	}
	return g.addKeys(shown)
}

func (g *gathering) addSecret(ctx context.Context, source *corev1.SecretProjection) error {
	shown := object{
		what:  "secret " + g.pod.Namespace + "/" + source.Name,
		items: source.Items, optional: orDefault(source.Optional, false),
	}
	secret, err := g.reader.Secret(ctx, g.pod, source.Name)
	if err != nil {
		return g.addMissing(shown, err)
	}
	shown.data = secret.Data
	return g.addKeys(shown)
}

// addMissing shows nothing of an object that may be missing, and is.
func (g *gathering) addMissing(shown object, err error) error {
	switch {
	case !errors.Is(err, ErrMissing) || apierrors.IsForbidden(err):
		return err
	case shown.optional:
		return nil
	default:
		return &missingError{shown.what + " doesn't exist: create it, or set optional: true"}
	}
}

func (g *gathering) addKeys(shown object) error {
	if len(shown.items) == 0 {
		for key, data := range shown.data {
			if err := g.put(key, found{File: g.file(data, nil, nil), origin: originOf(shown, key)}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, item := range shown.items {
		data, exists := shown.data[item.Key]
		if !exists && shown.optional {
			continue
		}
		if !exists {
			return &missingError{fmt.Sprintf("%s has no key %s: add it, or set optional: true", shown.what, item.Key)}
		}
		file := found{File: g.file(data, item.Mode, item.User), origin: originOf(shown, item.Key), chosen: true}
		if err := g.put(item.Path, file); err != nil {
			return err
		}
	}
	return nil
}

func originOf(shown object, key string) string {
	return "key " + key + " of " + shown.what
}

// missingError says what is missing, and what to do.
type missingError struct{ message string }

func (e *missingError) Error() string { return e.message }

// Unwrap makes it an ErrMissing.
func (*missingError) Unwrap() error { return ErrMissing }
