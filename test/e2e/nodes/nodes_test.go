package nodes_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/kubenode"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// Specs are in the order in which they build on each other.
var _ = Describe("Nodes", Ordered, Label("node"), func() {
	add := func(text string, run func(*spec)) {
		It(text, Offset(1), SpecTimeout(specTimeout), func(ctx SpecContext) { run(&spec{all, ctx}) })
	}
	add("run pods, which can be asked", ran)
	add("see what pods mount for them", propagated)
	add("let pods reach each other, and the API server", reached)
	add("keep their pods while kubelet and containerd restart", kubeletRestarted)
	add("come back from a crash with what their disk had", crashed)
})

const (
	write   = "echo begins; echo $HOSTNAME >>/data/names; exec sleep 1000000"
	propDir = "/var/lib/stowage/seen"
)

// ran: pods run, and can be asked.
func ran(s *spec) {
	scenario.Step("a pod runs on each", func() error { return s.run(s.pods("writer", write)...) })
	scenario.Step("each wrote to a volume of its own", func() error {
		return s.ofAll("writer", func(pod *corev1.Pod) error { return s.says(pod, pod.Name, "cat", "/data/names") })
	})
	scenario.Step("their logs can be read", func() error {
		return s.ofAll("writer", func(pod *corev1.Pod) error {
			log, err := s.kubectl("logs", pod.Name)
			if err == nil && log != "begins\n" {
				err = fmt.Errorf("pod %s logs %q", pod.Name, log)
			}
			return err
		})
	})
	scenario.Soon(s.ctx, "kubelets report how full disks are", func() error {
		for _, node := range s.Nodes {
			stats, err := s.kubectl("get", "--raw", "/api/v1/nodes/"+node.Name+"/proxy/stats/summary")
			if err == nil && !strings.Contains(stats, "capacityBytes") {
				err = fmt.Errorf("%s reports %s", node.Name, stats)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// propagated: what a pod mounts for the node, the node sees.
func propagated(s *spec) {
	target := filepath.Join(propDir, "mounted")
	script := "mkdir -p " + target + " && mount -t tmpfs seen " + target + " && exec sleep 1000000"
	var all []*corev1.Pod
	for _, node := range s.Nodes {
		all = append(all, mounter(node.Name, propDir, script))
	}
	scenario.Step("a privileged pod on each mounts in a folder of the node", func() error { return s.run(all...) })
	scenario.Soon(s.ctx, "the nodes see the mounts", func() error { return s.mounted(target, 1) })
	scenario.Step("and a folder of the machine's that they are shown", func() error {
		return s.Each(func(node *kubenode.Node) error {
			var names []string
			err := node.Host.Call(s.ctx, "Files.List", shown, &names)
			if err == nil && !slices.Contains(names, "node1-kubelet.log") {
				err = fmt.Errorf("%s has %q there", node.Name, names)
			}
			return err
		})
	})
	scenario.Step("the mounts outlive the pods", func() error { return errors.Join(s.end(all...), s.mounted(target, 1)) })
	scenario.Step("until another one unmounts them", func() error {
		for _, pod := range all {
			pod.Name, pod.ResourceVersion = "un"+pod.Name, ""
			pod.Spec.Containers[0].Command[2] = "umount " + target + " && exec sleep 1000000"
		}
		return errors.Join(s.run(all...), s.mounted(target, 0), s.end(all...))
	})
}

// mounted reports whether each node has so many mounts at a path.
func (s *spec) mounted(path string, want int) error {
	return s.Each(func(node *kubenode.Node) error {
		var got []string
		err := node.Host.Call(s.ctx, "Files.Mounts", path, &got)
		if err == nil && len(got) != want {
			err = fmt.Errorf("%s has %d mounts at %s, not %d: %q", node.Name, len(got), path, want, got)
		}
		return err
	})
}

// reached: pods reach each other, and the API server.
func reached(s *spec) {
	scenario.Step("each pod reaches the API server by its service", func() error {
		return s.ofAll("writer", func(pod *corev1.Pod) error {
			_, err := s.kubectl("exec", pod.Name, "--", "nc", "-w", "5", apiserver.ServiceAddress, "443", "-e", "true")
			return err
		})
	})
	scenario.Step("a pod serves on each node", func() error { return s.run(s.pods("server", "exec httpd -f -p 80 -h /etc")...) })
	scenario.Step("each pod reaches those of all nodes", func() error {
		return s.ofAll("server", func(server *corev1.Pod) error {
			return s.ofAll("writer", func(pod *corev1.Pod) error {
				_, err := s.kubectl("exec", pod.Name, "--", "nc", "-w", "5", server.Status.PodIP, "80", "-e", "true")
				return err
			})
		})
	})
}

// kubeletRestarted: pods don't notice.
func kubeletRestarted(s *spec) {
	before := map[string]string{}
	scenario.Step("all kubelets are killed, and start again", func() error {
		err := s.ofAll("writer", func(pod *corev1.Pod) error {
			before[pod.Name] = pod.Status.ContainerStatuses[0].ContainerID
			return nil
		})
		return errors.Join(err, s.all(kubenode.KillKubelet), s.all(kubenode.StartKubelet))
	})
	scenario.Step("so does containerd", func() error {
		return errors.Join(s.all(kubenode.KillContainerd), s.all(kubenode.StartContainerd))
	})
	scenario.Step("new pods run", func() error { return s.run(s.pods("later", write)...) })
	scenario.Step("the old ones are the same", func() error {
		return s.ofAll("writer", func(pod *corev1.Pod) error {
			if after := pod.Status.ContainerStatuses[0].ContainerID; after != before[pod.Name] {
				return fmt.Errorf("pod %s has container %s instead of %s", pod.Name, after, before[pod.Name])
			}
			return s.says(pod, pod.Name, "cat", "/data/names")
		})
	})
}

// all has each node do something with its programs.
func (s *spec) all(do kubenode.Control) error {
	return s.Each(func(node *kubenode.Node) error { return node.Do(s.ctx, do) })
}

// crashed: a node is gone at once, and comes back with what its disk had.
func crashed(s *spec) {
	var boot string
	at := func() (*guest.Node, *kubenode.Node) { return s.Guests[1], s.Nodes[2] }
	scenario.Step("node2 crashes, and boots", func() error {
		crashing, member := at()
		node, err := s.node(member.Name)
		if err != nil {
			return err
		}
		boot = node.Status.NodeInfo.BootID
		crashing.Crash()
		return crashing.BootAgain(s.ctx)
	})
	scenario.Step("it joins again", func() error {
		_, member := at()
		return member.Join(s.ctx)
	})
	scenario.Soon(s.ctx, "it is Ready, after another boot", func() error {
		_, member := at()
		node, err := s.node(member.Name)
		if err == nil && node.Status.NodeInfo.BootID == boot {
			err = errors.New("it hasn't reported its boot")
		}
		return errors.Join(err, s.IsReady(s.ctx, member.Name))
	})
	scenario.Soon(s.ctx, "its pod runs again, and finds what it wrote", func() error {
		pods := s.pods("writer", write)
		pod := pods[slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == s.Nodes[2].Name })]
		return errors.Join(s.runs(pod), s.says(pod, pod.Name+"\n"+pod.Name, "cat", "/data/names"))
	})
}

// pods are a pod for each node.
func (s *spec) pods(name, script string) []*corev1.Pod {
	var all []*corev1.Pod
	for _, node := range s.Nodes {
		all = append(all, pod(name, node.Name, script))
	}
	return all
}

// ofAll does something with the running pods of a name, one on each node.
func (s *spec) ofAll(name string, do func(*corev1.Pod) error) error {
	for _, pod := range s.pods(name, "") {
		if err := s.runs(pod); err != nil {
			return err
		}
		if err := do(pod); err != nil {
			return err
		}
	}
	return nil
}
