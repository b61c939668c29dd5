package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// asAgent makes the test binary be the node agent, so that it can be killed.
const asAgent = "STOWAGE_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if arguments := os.Getenv(asAgent); arguments != "" {
		os.Args = append(os.Args[:1], strings.Split(arguments, "\n")...)
		main()
		return
	}
	mounttest.Main(m, func() error { return shared.Stop() })
}

// process is an agent in a process of its own.
type process struct {
	client    kubernetes.Interface
	arguments []string
	root      string
	command   *exec.Cmd
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.command = exec.Command("/proc/self/exe")
	p.command.Env = append(os.Environ(), asAgent+"="+strings.Join(p.arguments, "\n"))
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
}

func (p *process) kill() {
	if p.command == nil {
		return
	}
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// mounted counts what is mounted in the agent's folder.
func (p *process) mounted(t *testing.T) int {
	t.Helper()
	table, err := mount.Kernel{}.Table()
	if err != nil {
		t.Fatal(err)
	}
	return len(table.Below(p.root))
}

// podDirs counts the pods that have a directory.
func (p *process) podDirs() int {
	dirs, _ := filepath.Glob(filepath.Join(p.root, "pods", "*"))
	return len(dirs)
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, ticker := time.After(60*time.Second), time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatal("waited in vain until", what)
		case <-ticker.C:
		}
	}
}

//proves:every/restart
func TestAnAgentThatIsKilledAtAnyPointLosesAndLeaksNothing(t *testing.T) {
	mounttest.NeedsRoot(t)
	const rounds, pods, volumes, parts = 6, 8, 3, 2
	const mounts = volumes + parts
	server := startServer(t)
	p := newProcess(t, server)
	namespace := p.client.CoreV1().Pods("default")
	createNode(t, p.client)

	for round := range rounds {
		t.Logf("round %d", round)
		p.start(t)
		for i := range pods {
			if _, err := namespace.Create(t.Context(), withParts(podInMemory(i, volumes), parts), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		// The kill comes after a few mounts, each round after some more.
		await(t, "something is mounted", func() bool { return p.mounted(t) > round*mounts })
		p.kill()
		p.start(t)
		await(t, "everything is mounted once", func() bool { return p.mounted(t) == pods*mounts })

		deleteAll(t.Context(), t, p.client)
		await(t, "something is unmounted", func() bool { return p.mounted(t) < pods*mounts-round*mounts })
		p.kill()
		p.start(t)
		p.awaitNothing(t)
		p.kill()
	}
}

// awaitNothing waits until nothing is left of any pod.
func (p *process) awaitNothing(t *testing.T) {
	t.Helper()
	await(t, "nothing is left on the node", func() bool { return p.podDirs() == 0 && p.mounted(t) == 0 })
	await(t, "nothing is left of the pods", func() bool {
		left, err := p.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(left.Items) == 0
	})
}

func newProcess(t *testing.T, server *serverForTest) *process {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "agent")
	p := &process{client: server.client, root: root, arguments: []string{
		"--node-name=n1", "--follow-pods", "--root-dir=" + root, "--local-base=" + dir,
		"--kubeconfig=" + server.kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0",
	}}
	t.Cleanup(func() {
		p.kill()
		if err := mount.UnmountBelow(mount.Kernel{}, dir); err != nil {
			t.Error(err)
		}
	})
	return p
}

// podInMemory is a pod with volumes that are mounts, and one that isn't.
func podInMemory(i, volumes int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i)},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
	}
	for n := range volumes + 1 {
		source := &corev1.EmptyDirVolumeSource{}
		if n < volumes {
			source.Medium = corev1.StorageMediumMemory
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", n), VolumeSource: corev1.VolumeSource{EmptyDir: source}})
	}
	return pod
}

// withParts gives a pod's container parts of its last volumes.
func withParts(pod *corev1.Pod, parts int) *corev1.Pod {
	for n := range parts {
		volume := pod.Spec.Volumes[len(pod.Spec.Volumes)-1-n].Name
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: volume, MountPath: "/" + volume, SubPath: "part/of/it"})
	}
	return pod
}

func deleteAll(ctx context.Context, t *testing.T, client kubernetes.Interface) {
	t.Helper()
	if err := client.CoreV1().Pods("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
}
