package content

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resource returns a request or limit of a container, in units of the divisor, rounded up.
func (c *collector) resource(ctx context.Context, selector *corev1.ResourceFieldSelector) (string, error) {
	container, err := containerOf(c.pod, selector.ContainerName)
	if err != nil {
		return "", err
	}
	kind, name, _ := strings.Cut(selector.Resource, ".")
	resource := corev1.ResourceName(name)
	if !isProjectable(resource) {
		kind = ""
	}
	switch kind {
	case "requests":
		return inUnits(resource, container.Resources.Requests[resource], selector.Divisor)
	case "limits":
		limit, err := c.limit(ctx, container, resource)
		if err != nil {
			return "", err
		}
		return inUnits(resource, limit, selector.Divisor)
	default:
		return "", fmt.Errorf("resource %s in a volume is %w", selector.Resource, ErrNotSupported)
	}
}

// limit returns a container's limit; without one, what is allocatable on the node. Huge pages
// never exceed the request.
func (c *collector) limit(ctx context.Context, container *corev1.Container, name corev1.ResourceName) (resource.Quantity, error) {
	limit := container.Resources.Limits[name]
	if !limit.IsZero() || isHugePages(name) {
		return limit, nil
	}
	node, err := c.reader.Node(ctx)
	if err != nil {
		return limit, err
	}
	if allocatable, known := node.Status.Allocatable[name]; known {
		return allocatable, nil
	}
	return limit, nil
}

func containerOf(pod *corev1.Pod, name string) (*corev1.Container, error) {
	for _, container := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if container.Name == name {
			return &container, nil
		}
	}
	return nil, fmt.Errorf("the pod has no container %s, whose resources a volume is to project: name one that it has", name)
}

func isProjectable(name corev1.ResourceName) bool {
	return slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}, name) || isHugePages(name)
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// inUnits divides, and rounds up. Processors are counted in thousandths.
func inUnits(name corev1.ResourceName, quantity, divisor resource.Quantity) (string, error) {
	if divisor.IsZero() {
		divisor = *resource.NewQuantity(1, resource.DecimalSI)
	}
	value, unit := quantity.Value(), divisor.Value()
	if name == corev1.ResourceCPU {
		value, unit = quantity.MilliValue(), divisor.MilliValue()
	}
	if unit <= 0 {
		return "", fmt.Errorf("divisor %s of resource %s isn't above zero: choose another", divisor.String(), name)
	}
	units := value / unit
	if value%unit > 0 {
		units++
	}
	return strconv.FormatInt(units, 10), nil
}
