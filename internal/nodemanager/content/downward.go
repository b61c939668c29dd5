package content

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func (c *collector) addDownwardAPI(ctx context.Context, items []corev1.DownwardAPIVolumeFile) error {
	for _, item := range items {
		text, origin, err := c.downward(ctx, item)
		if err != nil {
			return err
		}
		file := found{File: c.file([]byte(text), item.Mode, item.User), origin: origin, chosen: true}
		if err := c.put(item.Path, file); err != nil {
			return err
		}
	}
	return nil
}

// downward returns the text of one file, and its origin.
func (c *collector) downward(ctx context.Context, item corev1.DownwardAPIVolumeFile) (text, origin string, err error) {
	switch {
	case item.FieldRef != nil:
		text, err = fieldOf(c.pod, item.FieldRef.FieldPath)
		return text, "field " + item.FieldRef.FieldPath, err
	case item.ResourceFieldRef != nil:
		text, err = c.resource(ctx, item.ResourceFieldRef)
		return text, "resource " + item.ResourceFieldRef.Resource + " of container " + item.ResourceFieldRef.ContainerName, err
	default:
		return "", "", fmt.Errorf("file %s of a downwardAPI volume has neither fieldRef nor resourceFieldRef: give it one", item.Path)
	}
}

// fieldOf returns the value of a field that volumes may project. A missing label or annotation is
// empty.
func fieldOf(pod *corev1.Pod, field string) (string, error) {
	name, key, keyed := cutKey(field)
	switch {
	case keyed && name == "metadata.labels":
		return pod.Labels[key], nil
	case keyed && name == "metadata.annotations":
		return pod.Annotations[key], nil
	}
	switch field {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return lines(pod.Labels), nil
	case "metadata.annotations":
		return lines(pod.Annotations), nil
	default:
		return "", fmt.Errorf("field %s in a volume is %w", field, ErrNotSupported)
	}
}

// cutKey cuts name['key'] in two.
func cutKey(field string) (name, key string, keyed bool) {
	inner, closed := strings.CutSuffix(field, "']")
	name, key, opened := strings.Cut(inner, "['")
	return name, key, closed && opened
}

// lines formats a map: a line key="value" each, sorted, with the value quoted as in Go.
func lines(values map[string]string) string {
	each := make([]string, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		each = append(each, key+"="+strconv.Quote(values[key]))
	}
	return strings.Join(each, "\n")
}
