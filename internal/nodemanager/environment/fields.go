package environment

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

// field returns the value of a field that variables may have, and volumes may not. An unknown
// address is empty.
func (s scope) field(ctx context.Context, path string) (value string, known bool, err error) {
	switch path {
	case "spec.nodeName":
		return s.Pod.Spec.NodeName, true, nil
	case "spec.serviceAccountName":
		return s.Pod.Spec.ServiceAccountName, true, nil
	case "status.podIP":
		return s.Pod.Status.PodIP, true, nil
	case "status.podIPs":
		var addresses []string
		for _, address := range s.Pod.Status.PodIPs {
			addresses = append(addresses, address.IP)
		}
		return strings.Join(addresses, ","), true, nil
	case "status.hostIP", "status.hostIPs":
		addresses, err := s.hostAddresses(ctx)
		if path == "status.hostIP" && len(addresses) > 0 {
			addresses = addresses[:1]
		}
		return strings.Join(addresses, ","), err == nil, err
	default:
		return "", false, nil
	}
}

// hostAddresses returns the node's addresses, from the Node if the pod's status has none.
func (s scope) hostAddresses(ctx context.Context) ([]string, error) {
	var addresses []string
	for _, address := range s.Pod.Status.HostIPs {
		addresses = append(addresses, address.IP)
	}
	if len(addresses) > 0 {
		return addresses, nil
	}
	node, err := s.Reader.Node(ctx)
	if err != nil {
		return nil, err
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			addresses = append(addresses, address.Address)
		}
	}
	return addresses, nil
}

var errUnread = errors.New("this agent reads no objects for variables: use one with a plain value, or of a field of the pod")

// unread is the Reader of an agent that has none.
type unread struct{}

var _ content.Reader = unread{}

func (unread) ConfigMap(context.Context, *corev1.Pod, string) (*corev1.ConfigMap, error) {
	return nil, errUnread
}

func (unread) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return nil, errUnread
}

func (unread) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (content.Token, error) {
	return content.Token{}, errUnread
}

func (unread) Node(context.Context) (*corev1.Node, error) { return nil, errUnread }
