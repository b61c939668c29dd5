package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/apiserver"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/kubenode"
	"github.com/stowage-dev/stowage/test/story"
)

const (
	write   = "echo begins; echo $HOSTNAME >>/data/names; exec sleep 1000000"
	propDir = "/var/lib/stowage/seen"
)

// started: nodes are there.
func started(s *tale) {
	s.Chapter("Nodes")
	s.Do("two guests boot", func() error { return s.Boot(s.Ctx) })
	s.Do("a stock control plane starts", func() error { return s.StartControlPlane(s.Ctx, "", nil) })
	s.Do("containerd and a kubelet start on the machine and in the guests", s.join)
	s.Do("all take the images", func() error { return s.Load("pause.tar", "busybox.tar") })
	s.Do("all are Ready", func() error {
		return s.Each(func(node *kubenode.Node) error {
			return story.Eventually(s.Ctx, func() error { return s.IsReady(s.Ctx, node.Name) })
		})
	})
}

// ran: pods run, and can be asked.
func ran(s *tale) {
	s.Chapter("Pods")
	s.Do("a pod runs on each", func() error { return s.run(s.pods("writer", write)...) })
	s.Do("each wrote to a volume of its own", func() error {
		return s.ofAll("writer", func(pod *corev1.Pod) error { return s.says(pod, pod.Name, "cat", "/data/names") })
	})
	s.Do("their logs can be read", func() error {
		return s.ofAll("writer", func(pod *corev1.Pod) error {
			log, err := s.kubectl("logs", pod.Name)
			if err == nil && log != "begins\n" {
				err = fmt.Errorf("pod %s logs %q", pod.Name, log)
			}
			return err
		})
	})
	s.Soon("kubelets tell how full disks are", func() error {
		for _, node := range s.Nodes {
			stats, err := s.kubectl("get", "--raw", "/api/v1/nodes/"+node.Name+"/proxy/stats/summary")
			if err == nil && !strings.Contains(stats, "capacityBytes") {
				err = fmt.Errorf("%s tells %s", node.Name, stats)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// propagated: what a pod mounts for the node, the node sees.
func propagated(s *tale) {
	s.Chapter("Mounts")
	target := filepath.Join(propDir, "mounted")
	script := "mkdir -p " + target + " && mount -t tmpfs seen " + target + " && exec sleep 1000000"
	var all []*corev1.Pod
	for _, node := range s.Nodes {
		all = append(all, mounter(node.Name, propDir, script))
	}
	s.Do("a privileged pod on each mounts in a folder of the node", func() error { return s.run(all...) })
	s.Soon("the nodes see the mounts", func() error { return s.mounted(target, 1) })
	s.Do("and a folder of the machine's that they are shown", func() error {
		return s.Each(func(node *kubenode.Node) error {
			var names []string
			err := node.Host.Ask("Files.List", shown, &names)
			if err == nil && !slices.Contains(names, "node1-kubelet.log") {
				err = fmt.Errorf("%s has %q there", node.Name, names)
			}
			return err
		})
	})
	s.Do("the mounts outlive the pods", func() error { return errors.Join(s.end(all...), s.mounted(target, 1)) })
	s.Do("until another one unmounts them", func() error {
		for _, pod := range all {
			pod.Name, pod.ResourceVersion = "un"+pod.Name, ""
			pod.Spec.Containers[0].Command[2] = "umount " + target + " && exec sleep 1000000"
		}
		return errors.Join(s.run(all...), s.mounted(target, 0), s.end(all...))
	})
}

// mounted says whether each node has so many mounts at a path.
func (s *tale) mounted(path string, want int) error {
	return s.Each(func(node *kubenode.Node) error {
		var got []string
		err := node.Host.Ask("Files.Mounts", path, &got)
		if err == nil && len(got) != want {
			err = fmt.Errorf("%s has %d mounts at %s, not %d: %q", node.Name, len(got), path, want, got)
		}
		return err
	})
}

// reached: pods reach each other, and the API server.
func reached(s *tale) {
	s.Chapter("Network")
	s.Do("each pod reaches the API server by its service", func() error {
		return s.ofAll("writer", func(pod *corev1.Pod) error {
			_, err := s.kubectl("exec", pod.Name, "--", "nc", "-w", "5", apiserver.ServiceAddress, "443", "-e", "true")
			return err
		})
	})
	s.Do("a pod serves on each node", func() error { return s.run(s.pods("server", "exec httpd -f -p 80 -h /etc")...) })
	s.Do("each pod reaches those of all nodes", func() error {
		return s.ofAll("server", func(server *corev1.Pod) error {
			return s.ofAll("writer", func(pod *corev1.Pod) error {
				_, err := s.kubectl("exec", pod.Name, "--", "nc", "-w", "5", server.Status.PodIP, "80", "-e", "true")
				return err
			})
		})
	})
}

// kubeletRestarted: pods don't notice.
func kubeletRestarted(s *tale) {
	s.Chapter("Programs that end")
	before := map[string]string{}
	s.Do("all kubelets are killed, and start again", func() error {
		err := s.ofAll("writer", func(pod *corev1.Pod) error {
			before[pod.Name] = pod.Status.ContainerStatuses[0].ContainerID
			return nil
		})
		return errors.Join(err, s.Each((*kubenode.Node).KillKubelet), s.Each((*kubenode.Node).StartKubelet))
	})
	s.Do("so does containerd", func() error {
		return errors.Join(s.Each((*kubenode.Node).KillContainerd), s.Each((*kubenode.Node).StartContainerd))
	})
	s.Do("new pods run", func() error { return s.run(s.pods("later", write)...) })
	s.Do("the old ones are the same", func() error {
		return s.ofAll("writer", func(pod *corev1.Pod) error {
			if after := pod.Status.ContainerStatuses[0].ContainerID; after != before[pod.Name] {
				return fmt.Errorf("pod %s has container %s instead of %s", pod.Name, after, before[pod.Name])
			}
			return s.says(pod, pod.Name, "cat", "/data/names")
		})
	})
}

// crashed: a node is gone at once, and comes back with what its disk had.
func crashed(s *tale) {
	s.Chapter("A node that crashes")
	var boot string
	at := func() (*guests.Node, *kubenode.Node) { return s.Guests[1], s.Nodes[2] }
	s.Do("node2 crashes, and boots", func() error {
		guest, member := at()
		node, err := s.node(member.Name)
		if err != nil {
			return err
		}
		boot = node.Status.NodeInfo.BootID
		guest.Crash()
		return guest.BootAgain(s.Ctx)
	})
	s.Do("it joins again", func() error {
		_, member := at()
		return member.Join()
	})
	s.Soon("it is Ready, after another boot", func() error {
		_, member := at()
		node, err := s.node(member.Name)
		if err == nil && node.Status.NodeInfo.BootID == boot {
			err = errors.New("it hasn't told of its boot")
		}
		return errors.Join(err, s.IsReady(s.Ctx, member.Name))
	})
	s.Soon("its pod runs again, and finds what it wrote", func() error {
		pods := s.pods("writer", write)
		pod := pods[slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == s.Nodes[2].Name })]
		return errors.Join(s.runs(pod), s.says(pod, pod.Name+"\n"+pod.Name, "cat", "/data/names"))
	})
}

// pods are a pod for each node.
func (s *tale) pods(name, script string) []*corev1.Pod {
	var all []*corev1.Pod
	for _, node := range s.Nodes {
		all = append(all, pod(name, node.Name, script))
	}
	return all
}

// ofAll does something with the running pods of a name, one on each node.
func (s *tale) ofAll(name string, do func(*corev1.Pod) error) error {
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
