package nodemanager_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func (w *world) configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Data: map[string]string{"key": value}}
}

func (w *world) secret(name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Data: map[string][]byte{"key": []byte(value)}}
}

func fromConfigMap(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name},
	}}}
}

func fromSecret(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}
}

func fromLabels(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{{Path: "key", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['color']"}}},
	}}}
}

func fromToken(name, audience string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience, Path: "key"}}},
	}}}
}

// contentOf is the content of a volume.
func (w *world) contentOf(pod *corev1.Pod, plugin, name string) func() string {
	return func() string {
		data, err := os.ReadFile(filepath.Join(w.volumeDir(pod, plugin, name), "key"))
		if err != nil {
			return "nothing"
		}
		return string(data)
	}
}

// withAccount makes a service account, and the pod run as it.
func (w *world) withAccount(ctx context.Context, pod *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	Expect(admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "robot"}})).To(Succeed())
	pod.Spec.ServiceAccountName = "robot"
	return pod
}

// requests are an agent's requests to the API server.
type requests struct {
	mu   sync.Mutex
	urls []*url.URL
	// unanswered is a resource for which the API server sends no answer.
	unanswered string
}

// record has the requests of agents that are started from now on recorded.
func (w *world) record() *requests {
	recorded := &requests{}
	w.user.Wrap(func(inner http.RoundTripper) http.RoundTripper { return &recorder{inner, recorded} })
	return recorded
}

type recorder struct {
	inner http.RoundTripper
	*requests
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.urls = append(r.urls, request.URL)
	silent := r.unanswered != "" && strings.Contains(request.URL.Path, "/"+r.unanswered)
	r.mu.Unlock()
	if silent {
		return nil, errors.New("connection refused")
	}
	return r.inner.RoundTrip(request)
}

// leave leaves the requests for a resource unanswered.
func (r *requests) leave(resource string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unanswered = resource
}

// watches is how many watches of a resource began.
func (r *requests) watches(resource string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := 0
	for _, url := range r.urls {
		if strings.HasSuffix(url.Path, "/"+resource) && url.Query().Has("watch") {
			count++
		}
	}
	return count
}

// line is a connection to the API server that can be cut.
type line struct {
	server string
	mu     sync.Mutex
	cut    bool
	open   map[net.Conn]struct{}
}

// overLine leads agents that are started from now on over a line.
func (w *world) overLine() *line {
	GinkgoHelper()
	server, err := url.Parse(w.user.Host)
	Expect(err).NotTo(HaveOccurred())
	l := &line{server: server.Host, open: map[net.Conn]struct{}{}}
	if !strings.Contains(w.user.Host, "://") {
		l.server = w.user.Host
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			go l.connect(caller)
		}
	}()
	w.user = rest.CopyConfig(w.user)
	w.user.Host = "https://" + listener.Addr().String()
	return l
}

func (l *line) connect(caller net.Conn) {
	defer caller.Close()
	server, err := net.Dial("tcp", l.server)
	if err != nil {
		return
	}
	defer server.Close()
	if !l.enter(caller) {
		return
	}
	go func() { _, _ = io.Copy(server, caller) }()
	_, _ = io.Copy(caller, server)
}

func (l *line) enter(caller net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[caller] = struct{}{}
	return !l.cut
}

// set cuts the line, or mends it.
func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for caller := range l.open {
			_ = caller.Close()
		}
		clear(l.open)
	}
}
