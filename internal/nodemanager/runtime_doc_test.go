package nodemanager_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/stowage-dev/stowage/internal/mount"
)

// repository is the way to it from here.
const repository = "../.."

var _ = Describe("The example in docs/runtime.md", func() {
	//proves:every/subPathExpr every/groups
	It("runs a process with a pod's volumes, with the output of the page", func(ctx context.Context) {
		for _, program := range []string{"jq", "unshare", "chroot"} {
			if _, err := exec.LookPath(program); err != nil {
				Skip("NOT RUN: " + program + " is missing")
			}
		}
		w := newWorld(ctx)
		w.register(ctx)
		w.startAgent()
		pod := w.podOfDocs(ctx)
		Eventually(volumesReady(ctx, pod)).Should(HavePrefix("True"))

		said := w.runDocs(ctx, pod)

		Expect(said).To(Equal(docs("text")))
		Expect(w.mountsInPods()).To(HaveLen(2), "what the example mounts is gone with it")
		Expect(filepath.Join(w.volumeDir(pod, "empty-dir", "work"), "logs", "web", "today")).To(BeAnExistingFile())
		Expect(admin.Delete(ctx, pod)).To(Succeed())
		Eventually(isGone(ctx, pod)).Should(BeTrue())
		Expect(w.podDirs()).To(BeEmpty())
	})
})

// docs is the block of a language in docs/runtime.md.
func docs(language string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "runtime.md"))
	Expect(err).NotTo(HaveOccurred())
	block := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)```\n").FindSubmatch(text)
	Expect(block).NotTo(BeNil(), "a block of %s", language)
	return string(block[1])
}

// podOfDocs creates what the example does.
func (w *world) podOfDocs(ctx context.Context) *corev1.Pod {
	GinkgoHelper()
	configMap, pod := &corev1.ConfigMap{}, &corev1.Pod{}
	first, second, found := strings.Cut(docs("yaml"), "---\n")
	Expect(found).To(BeTrue())
	Expect(yaml.UnmarshalStrict([]byte(first), configMap)).To(Succeed())
	Expect(yaml.UnmarshalStrict([]byte(second), pod)).To(Succeed())
	configMap.Namespace, pod.Namespace, pod.Spec.NodeName = w.namespace, w.namespace, w.node
	Expect(admin.Create(ctx, configMap)).To(Succeed())
	Expect(admin.Create(ctx, pod)).To(Succeed())
	return pod
}

// runDocs runs the example's commands, with another root directory of the agent, and
// with a kubectl that knows the pod only.
func (w *world) runDocs(ctx context.Context, pod *corev1.Pod) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.Symlink(absolute(filepath.Join(repository, "docs")), filepath.Join(dir, "docs"))).To(Succeed())
	makeRoot(filepath.Join(dir, "root"))
	script := strings.ReplaceAll(docs("sh"), "/var/lib/stowage-agent", w.root)
	command := exec.CommandContext(ctx, "bash", "-ec", "kubectl() { echo "+string(pod.UID)+"; }\n"+script)
	command.Dir = dir
	said, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", said)
	return string(said)
}

// makeRoot makes a root directory with this machine's own programs.
func makeRoot(root string) {
	GinkgoHelper()
	for _, name := range []string{"usr", "bin", "sbin", "lib", "lib64"} {
		info, err := os.Lstat("/" + name)
		if os.IsNotExist(err) {
			continue
		}
		Expect(err).NotTo(HaveOccurred())
		at := filepath.Join(root, name)
		if info.Mode()&os.ModeSymlink != 0 {
			to, err := os.Readlink("/" + name)
			Expect(err).NotTo(HaveOccurred())
			Expect(os.Symlink(strings.TrimPrefix(to, "/"), at)).To(Succeed())
			continue
		}
		Expect(os.MkdirAll(at, 0o755)).To(Succeed())
		programs, err := os.Open("/" + name)
		Expect(err).NotTo(HaveOccurred())
		// Read-only: whatever empties the test's directory must not be able to go there.
		Expect(mount.Kernel{}.Bind(programs, at, mount.ReadOnly)).To(Succeed())
		Expect(programs.Close()).To(Succeed())
		DeferCleanup(func() { Expect(mount.Kernel{}.Unmount(at)).To(Succeed()) })
	}
}

func absolute(path string) string {
	GinkgoHelper()
	at, err := filepath.Abs(path)
	Expect(err).NotTo(HaveOccurred())
	return at
}
