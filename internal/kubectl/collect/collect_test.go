package collect

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/kubectltest"
	"github.com/stowage-dev/stowage/internal/kubectl/output"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const hidden = "hunter2"

func TestSecretsAreRemovedFromTexts(t *testing.T) {
	for text, want := range map[string]string{
		"mount -o username=a,password=hunter2,vers=3":                           "mount -o username=a,password=REMOVED,vers=3",
		`{"token":"hunter2","a":1}`:                                             `{"token":"REMOVED","a":1}`,
		"Authorization: Bearer hunter2.x":                                       "Authorization: Bearer REMOVED",
		"got eyJhbGciOiJSUzI1.eyJpc3MiOiJr.c2ln from it":                        "got REMOVED from it",
		"https://user:hunter2@host/path":                                        "https://user:REMOVED@host/path",
		"--api-key hunter":                                                      "--api-key hunter",
		"volume pvc-1 is bound":                                                 "volume pvc-1 is bound",
		"-----BEGIN PRIVATE KEY-----\nhunter2":                                  "REMOVED",
		"a -----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY----- b": "a REMOVED b",
	} {
		if got := redactText(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// objectsWithSecrets have hidden in every place where users put passwords.
func objectsWithSecrets() []client.Object {
	pv := Volume("v")
	pv.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": hidden, "note": "password: " + hidden}
	pv.Spec.MountOptions = []string{"password=" + hidden}
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: "other", VolumeHandle: "h", VolumeAttributes: map[string]string{"userPassword": hidden, "server": "nfs"},
		NodeStageSecretRef: &corev1.SecretReference{Name: "the-secret", Namespace: "ns"},
	}}
	pod := Pod("agent", "node-1")
	pod.Labels = map[string]string{"app.kubernetes.io/name": "stowage"}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ANY", Value: hidden}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 1}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, StringData: map[string]string{"x": hidden}}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}, Data: map[string]string{"x": hidden}}
	about := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolume"}, Message: "kept-event"}
	other := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "o"}, InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet"}, Message: "dropped-event"}
	return []client.Object{pv, pod, secret, config, about, other}
}

func collectionOf(t *testing.T, parts ...Part) (*collection, *bytes.Buffer) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	c := cluster.New(streams)
	c.Clock = clocktesting.NewFakePassiveClock(kubectltest.Now)
	c.Open = func() (client.Client, error) { return kubectltest.Client(objectsWithSecrets()...), nil }
	return &collection{cluster: c, logs: kubernetesfake.NewClientset(), version: "v1", parts: parts}, out
}

// unpacked is the content of each file of an archive.
func unpacked(t *testing.T, archive io.Reader) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	files, from := map[string]string{}, tar.NewReader(zipped)
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		content, readErr := io.ReadAll(from)
		if err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		files[header.Name] = string(content)
	}
}

func TestCollectLeavesNoSecretInTheArchive(t *testing.T) {
	all, _ := collectionOf(t, Part{Name: "status", Write: func(_ context.Context, p *output.Printer) error {
		p.Line("password=%s", hidden)
		return errors.New("half of it")
	}})
	out := &bytes.Buffer{}
	if err := all.write(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	files := unpacked(t, out)
	for name, content := range files {
		if strings.Contains(content, hidden) || strings.Contains(content, "dropped-event") {
			t.Errorf("%s has\n%s", name, content)
		}
	}
	for name, want := range map[string]string{
		"stowage/objects/persistentvolumes.yaml": "name: the-secret",
		"stowage/objects/pods.yaml":              "name: ANY",
		"stowage/objects/events.yaml":            "kept-event",
		"stowage/logs/agent/main.log":            "fake logs",
		"stowage/logs/agent/main.previous.log":   "fake logs",
		"stowage/status.txt":                     "Error: half of it",
		"stowage/about.txt":                      "kubectl-stowage v1",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%s", name, want, files[name])
		}
	}
	if _, is := files["stowage/objects/secrets.yaml"]; is {
		t.Error("it has Secrets")
	}
}

func TestCollectWritesANewFileForItsOwnerAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.tar.gz")
	all, out := collectionOf(t)
	if err := all.writeFile(t.Context(), name); err != nil || !strings.Contains(out.String(), "Wrote "+name) {
		t.Fatal(err, out)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if err := all.writeFile(t.Context(), name); err == nil || !strings.Contains(err.Error(), "choose another name with --file") {
		t.Errorf("a file was overwritten: %v", err)
	}
}

func TestAnArchiveIsBounded(t *testing.T) {
	out := &bytes.Buffer{}
	to := newArchive(out, kubectltest.Now)
	big := bytes.Repeat([]byte("x"), mostOfFile+1)
	for range mostOfArchive/mostOfFile + 1 {
		to.add("big", big)
	}
	if err := to.close(); err != nil || to.size != mostOfArchive {
		t.Errorf("%d bytes, %v", to.size, err)
	}
	if left := strings.Join(to.left, "\n"); !strings.Contains(left, "cut after 4194304 of 4194305 bytes") || !strings.Contains(left, "the archive is full") {
		t.Errorf("it says %s", left)
	}
}
