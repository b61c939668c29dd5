package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

//proves:objects/crash
func TestAnAgentThatIsKilledAtAnyPointShowsWhatSecretsHaveAndLeavesNoneBehind(t *testing.T) {
	mounttest.NeedsRoot(t)
	const rounds, pods = 4, 8
	server := startServer(t)
	p := newProcess(t, server)
	createNode(t, p.client)
	secrets := p.client.CoreV1().Secrets("default")
	password, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change := func(value string) {
		password.StringData = map[string]string{"key": value}
		if password, err = secrets.Update(t.Context(), password, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	for round := range rounds {
		t.Logf("round %d", round)
		before, after := fmt.Sprintf("before-%d", round), fmt.Sprintf("after-%d", round)
		change(before)
		p.start(t)
		for i := range pods {
			if _, err := p.client.CoreV1().Pods("default").Create(t.Context(), podWithSecret(i), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		// The kills come after a few are shown, each round after some more.
		await(t, "something is shown", func() bool { return p.shown(before) > round })
		p.kill()
		p.start(t)
		await(t, "everything is shown", func() bool { return p.shown(before) == pods })
		change(after)
		await(t, "something is followed", func() bool { return p.shown(after) > round })
		p.kill()
		if shown := p.shown(before) + p.shown(after); shown != pods {
			t.Errorf("%d of %d pods see the secret while no agent runs", shown, pods)
		}
		p.start(t)
		await(t, "everything is followed", func() bool { return p.shown(after) == pods })

		deleteAll(t.Context(), t, p.client)
		await(t, "something is taken away", func() bool { return p.shown(after) < pods-round })
		p.kill()
		p.start(t)
		p.awaitNothing(t)
		p.kill()
	}
}

// shown counts the pods that see a value of the secret.
func (p *process) shown(value string) int {
	files, _ := filepath.Glob(filepath.Join(p.root, "pods", "*", "volumes", "kubernetes.io~secret", "secret", "key"))
	count := 0
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && string(data) == value {
			count++
		}
	}
	return count
}

func podWithSecret(i int) *corev1.Pod {
	pod := podInMemory(i, 0)
	pod.Spec.Volumes = []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "password"}}}}
	return pod
}
