package environment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stowage-dev/stowage/internal/nodemanager/content"
	"github.com/stowage-dev/stowage/internal/nodemanager/environment"
)

// shelf is a Reader of what lies on it; nothing else is there.
type shelf struct {
	configMaps map[string]map[string]string
	secrets    map[string]map[string]string
	node       corev1.Node
	read       []string
}

func (s *shelf) ConfigMap(_ context.Context, _ *corev1.Pod, name string) (*corev1.ConfigMap, error) {
	s.read = append(s.read, name)
	data, there := s.configMaps[name]
	if !there {
		return nil, fmt.Errorf("configMap %s: %w", name, content.ErrMissing)
	}
	return &corev1.ConfigMap{Data: data}, nil
}

func (s *shelf) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	s.read = append(s.read, name)
	data, there := s.secrets[name]
	if !there {
		return nil, fmt.Errorf("secret %s: %w", name, content.ErrMissing)
	}
	secret := &corev1.Secret{Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret, nil
}

func (s *shelf) Token(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (content.Token, error) {
	return content.Token{}, errors.New("no variable is a token")
}

func (s *shelf) Node(context.Context) (*corev1.Node, error) { return &s.node, nil }

func newShelf() *shelf {
	return &shelf{
		configMaps: map[string]map[string]string{"settings": {"TEAM": "red", "ONLY": "settings"}, "late": {"TEAM": "late"}},
		secrets:    map[string]map[string]string{"tls": {"PIN": "hunter2"}},
		node: corev1.Node{Status: corev1.NodeStatus{
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n1"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.7"}},
			Allocatable: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")},
		}},
	}
}

func plain(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func key(name, configMap, key string, optional bool) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Key: key, Optional: &optional,
	}}}
}

func secret(name, from, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: from}, Key: key,
	}}}
}

func all(prefix, configMap string, optional bool) corev1.EnvFromSource {
	return corev1.EnvFromSource{Prefix: prefix, ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Optional: &optional,
	}}
}

func resourceField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: path, Divisor: resource.MustParse("1Mi")}}}
}

// of is the environment of a pod's only container.
func of(reader content.Reader, env []corev1.EnvVar, from ...corev1.EnvFromSource) environment.Of {
	container := corev1.Container{Name: "main", Env: env, EnvFrom: from, Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
	}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1", Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{NodeName: "n1", ServiceAccountName: "robot", Containers: []corev1.Container{container}},
		Status:     corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}, {IP: "fd00::1"}}, PodIP: "10.1.0.1"},
	}
	return environment.Of{Pod: pod, Container: container, Reader: reader}
}

//proves:every/subPathExpr
func TestTheValueOfAnExpression(t *testing.T) {
	tests := map[string]struct {
		expression, want string
		env              []corev1.EnvVar
		from             []corev1.EnvFromSource
	}{
		"no variable":                          {"logs/today", "logs/today", nil, nil},
		"a plain value":                        {"logs/$(A)/x", "logs/a/x", []corev1.EnvVar{plain("A", "a")}, nil},
		"two dollars":                          {"$$(A)$$", "$(A)$", []corev1.EnvVar{plain("A", "a")}, nil},
		"dollars that name nothing":            {"$A$(B$", "$A$(B$", []corev1.EnvVar{plain("A", "a")}, nil},
		"references to earlier ones":           {"$(B)", "b-a", []corev1.EnvVar{plain("A", "a"), plain("B", "b-$(A)")}, nil},
		"a reference to a later one":           {"$(B)", "b-$(A)", []corev1.EnvVar{plain("B", "b-$(A)"), plain("A", "a")}, nil},
		"a reference that is escaped":          {"$(B)", "$(A)", []corev1.EnvVar{plain("A", "a"), plain("B", "$$(A)")}, nil},
		"one that hides an earlier one":        {"$(A)", "old-new", []corev1.EnvVar{plain("A", "old"), plain("A", "$(A)-new")}, nil},
		"fields of the pod":                    {"$(N)-$(U)-$(L)", "web-u1-shop", []corev1.EnvVar{field("N", "metadata.name"), field("U", "metadata.uid"), field("L", "metadata.labels['app']")}, nil},
		"the node and the service account":     {"$(N)/$(S)", "n1/robot", []corev1.EnvVar{field("N", "spec.nodeName"), field("S", "spec.serviceAccountName")}, nil},
		"addresses":                            {"$(H)/$(P)/$(Q)", "10.0.0.7/10.1.0.1/10.1.0.1,fd00::1", []corev1.EnvVar{field("H", "status.hostIP"), field("P", "status.podIP"), field("Q", "status.podIPs")}, nil},
		"what the container asks for":          {"$(M)", "64", []corev1.EnvVar{resourceField("M", "requests.memory")}, nil},
		"what it may have, by the node":        {"$(M)", "8192", []corev1.EnvVar{resourceField("M", "limits.memory")}, nil},
		"keys":                                 {"$(T)/$(P)", "red/hunter2", []corev1.EnvVar{key("T", "settings", "TEAM", false), secret("P", "tls", "PIN")}, nil},
		"a key that may be missing":            {"$(T)", "first", []corev1.EnvVar{plain("T", "first"), key("T", "settings", "NONE", true)}, nil},
		"all keys":                             {"$(MY_TEAM)", "red", nil, []corev1.EnvFromSource{all("MY_", "settings", false)}},
		"all keys, the later ones win":         {"$(TEAM)/$(ONLY)", "late/settings", nil, []corev1.EnvFromSource{all("", "settings", false), all("", "late", false)}},
		"all keys of what may be missing":      {"$(TEAM)", "red", nil, []corev1.EnvFromSource{all("", "settings", false), all("", "nowhere", true)}},
		"one of its own hides all keys":        {"$(TEAM)", "mine-red", []corev1.EnvVar{plain("TEAM", "mine-$(TEAM)")}, []corev1.EnvFromSource{all("", "settings", false)}},
		"a variable that isn't named, missing": {"$(A)", "a", []corev1.EnvVar{plain("A", "a"), secret("B", "nowhere", "x")}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := of(newShelf(), test.env, test.from...).Path(t.Context(), test.expression)
			if err != nil || got != test.want {
				t.Errorf("got %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

//proves:every/subPathExpr
func TestAVariableThatCannotBeHadIsNamed(t *testing.T) {
	bomb := []corev1.EnvVar{plain("V0", "boom")}
	for i := 1; i < 60; i++ {
		earlier := fmt.Sprintf("$(V%d)", i-1)
		bomb = append(bomb, plain(fmt.Sprintf("V%d", i), earlier+earlier))
	}
	tests := map[string]struct {
		expression, want string
		env              []corev1.EnvVar
	}{
		"it isn't declared":            {"a/$(MISSING)", "variable MISSING isn't set, or is empty: set it in env or envFrom of container main", nil},
		"it is empty":                  {"a/$(A)", "variable A isn't set, or is empty", []corev1.EnvVar{plain("A", "")}},
		"an address isn't known":       {"$(A)", "variable A isn't set, or is empty", []corev1.EnvVar{field("A", "metadata.labels['none']")}},
		"its object is missing":        {"$(A)", "variable A: ", []corev1.EnvVar{secret("A", "nowhere", "x")}},
		"its key is missing":           {"$(A)", "variable A: ", []corev1.EnvVar{key("A", "settings", "NONE", false)}},
		"it is of a file":              {"$(A)", "variable A: it is taken from a file", []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{}}}},
		"it grows with each reference": {"$(V59)", "more than 4096 characters", bomb},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := of(newShelf(), test.env).Path(t.Context(), test.expression)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "subPathExpr "+test.expression) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestAMissingObjectIsWaitedFor(t *testing.T) {
	_, err := of(newShelf(), []corev1.EnvVar{secret("A", "nowhere", "x")}).Path(t.Context(), "$(A)")
	if !errors.Is(err, content.ErrMissing) {
		t.Errorf("got %v", err)
	}
}

func TestWithoutAReaderOnlyPlainValuesAndFieldsAreKnown(t *testing.T) {
	env := []corev1.EnvVar{plain("A", "a"), field("N", "metadata.name"), secret("S", "tls", "PIN")}
	if got, err := of(nil, env).Path(t.Context(), "$(A)-$(N)"); err != nil || got != "a-web" {
		t.Errorf("got %q (%v)", got, err)
	}
	if _, err := of(nil, env).Path(t.Context(), "$(S)"); err == nil || !strings.Contains(err.Error(), "reads no objects") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyVariablesOfTheExpressionAreRead(t *testing.T) {
	shelf := newShelf()
	env := []corev1.EnvVar{secret("B", "tls", "PIN"), key("A", "settings", "TEAM", false)}
	if _, err := of(shelf, env, all("", "late", false)).Path(t.Context(), "$(A)"); err != nil || len(shelf.read) != 1 {
		t.Errorf("read: %v (%v)", shelf.read, err)
	}
}

// closed is a Reader whose secrets can't be read yet.
type closed struct{ *shelf }

func (closed) Secret(_ context.Context, _ *corev1.Pod, name string) (*corev1.Secret, error) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, nil)
	return nil, fmt.Errorf("secret %s: %w: %w", name, content.ErrMissing, forbidden)
}

func TestAnUnreadableObjectIsNotMissing(t *testing.T) {
	from := func(name string) corev1.EnvFromSource {
		return corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: new(true)}}
	}
	settings := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}
	main := corev1.Container{EnvFrom: []corev1.EnvFromSource{settings, from("mine")}}

	path, err := environment.Of{Pod: &corev1.Pod{}, Container: main, Reader: closed{newShelf()}}.Path(t.Context(), "$(TEAM)")
	if !errors.Is(err, content.ErrMissing) {
		t.Errorf("it is %q: %v", path, err)
	}
	path, err = environment.Of{Pod: &corev1.Pod{}, Container: main, Reader: newShelf()}.Path(t.Context(), "$(TEAM)")
	if err != nil || path != "red" {
		t.Errorf("without the secret it is %q: %v", path, err)
	}
}
