package content_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

// objects is a content.Reader of what it holds. Those named secret-to-nodes can't be
// read yet.
type objects struct {
	configMaps map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
	renew      map[string]time.Time
}

const unreadable = "secret-to-nodes"

func missing(kind, name string) error {
	if name == unreadable {
		return fmt.Errorf("%w: %w", content.ErrMissing, apierrors.NewForbidden(schema.GroupResource{Resource: kind}, name, nil))
	}
	return fmt.Errorf("reading %s %s: %w", kind, name, content.ErrMissing)
}

func (o objects) ConfigMap(_ context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	if found, exists := o.configMaps[name]; exists {
		return found, nil
	}
	return nil, missing("configmaps", name)
}

func (o objects) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	if found, exists := o.secrets[name]; exists {
		return found, nil
	}
	return nil, missing("secrets", name)
}

// Token is worth as much as the name of its audience.
func (o objects) Token(_ context.Context, _ *corev1.Pod, projection *corev1.ServiceAccountTokenProjection) (content.Token, error) {
	return content.Token{Value: "token for " + projection.Audience, Renew: o.renew[projection.Audience]}, nil
}

func (o objects) Node(context.Context) (*corev1.Node, error) {
	return &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("3900m"), corev1.ResourceMemory: resource.MustParse("7Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"), "hugepages-2Mi": resource.MustParse("1Gi"),
	}}}, nil
}

// cluster is what the volumes of the tests are made of.
func cluster() objects {
	return objects{
		configMaps: map[string]*corev1.ConfigMap{
			"app":    {Data: map[string]string{"a.conf": "a", "b.conf": "b"}, BinaryData: map[string][]byte{"logo": {0, 1}}},
			"fresh":  {Data: map[string]string{"a.conf": "newer"}},
			"folder": {Data: map[string]string{"etc": "a file"}},
		},
		secrets: map[string]*corev1.Secret{"tls": {Data: map[string][]byte{"tls.crt": []byte("cert"), "tls.key": []byte("key")}}},
		renew:   map[string]time.Time{},
	}
}

// web is the pod of the tests.
func web() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", UID: "u-1",
			Labels:      map[string]string{"tier": "front", "app": "shop"},
			Annotations: map[string]string{"example.com/Note": "say \"hi\"\nand go"},
		},
		Spec: corev1.PodSpec{ServiceAccountName: "robot", Containers: []corev1.Container{{Name: "main"}}},
	}
}

// shown is what a volume of the pod shows, a line per file: path, mode, owner and data.
func shown(t *testing.T, reader content.Reader, pod *corev1.Pod, source corev1.VolumeSource) (string, time.Time, error) {
	t.Helper()
	files, renew, err := content.Of(t.Context(), reader, pod, corev1.Volume{Name: "v", VolumeSource: source})
	if err == nil && files == nil {
		t.Error("what it shows is nil, as if it weren't known")
	}
	return describe(files), renew, err
}

// mustShow asserts what a volume of the pod web shows.
func mustShow(t *testing.T, source corev1.VolumeSource, want ...string) {
	t.Helper()
	got, _, err := shown(t, cluster(), web(), source)
	if err != nil || got != strings.Join(want, "\n") {
		t.Errorf("shown:\n%s\n(%v), want:\n%s", got, err, strings.Join(want, "\n"))
	}
}

// mustFail asserts why a volume of the pod web shows nothing; kind is nil if it is none
// that is acted on.
func mustFail(t *testing.T, source corev1.VolumeSource, kind error, want string) {
	t.Helper()
	got, _, err := shown(t, cluster(), web(), source)
	if err == nil || err.Error() != want || kind != nil && !errors.Is(err, kind) {
		t.Errorf("shown:\n%s\nwith error:\n%v\nwant error:\n%s", got, err, want)
	}
}
