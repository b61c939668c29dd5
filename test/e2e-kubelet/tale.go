package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/apiserver"
	"github.com/stowage-dev/stowage/test/controlplane"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/kubenode"
	"github.com/stowage-dev/stowage/test/story"
)

// Names of images as hack/images gives them, and hardware of guests.
const (
	pause   = "localhost/stowage-pause:e2e"
	busybox = "localhost/stowage-busybox:e2e"

	machine = "machine"
	// shown is where nodes find a folder of the machine's.
	shown       = "/run/shown"
	guestCount  = 2
	guestMemory = "1536M"
	guestDisk   = 8 << 30
)

// archives have those images.
var archives = []string{"pause.tar", "busybox.tar"}

// tale is the story, with those who play in it.
type tale struct {
	*story.Story
	folder guests.Folder
	guests []*guests.Node
	plane  *controlplane.ControlPlane
	client client.Client
	nodes  []*kubenode.Node
}

func newTale(ctx context.Context, folder guests.Folder) *tale {
	return &tale{Story: story.New(ctx), folder: folder}
}

// boot boots the guests.
func (s *tale) boot() (err error) {
	s.guests, err = guests.BootAs(s.Ctx, s.folder, guestCount, guests.Hardware{Memory: guestMemory, Disk: guestDisk})
	return err
}

// startControlPlane starts it where nodes reach it.
func (s *tale) startControlPlane() (err error) {
	s.plane, err = controlplane.Start(s.Ctx, controlplane.Options{Dir: s.folder.ControlPlane(), Address: guests.Address})
	if err != nil {
		return err
	}
	s.client, err = client.New(s.plane.Config, client.Options{})
	return err
}

// join makes nodes of the machine and the guests, all at once.
func (s *tale) join() error {
	if err := s.plan(); err != nil {
		return err
	}
	if err := s.plane.ServeService(apiserver.ServiceAddress); err != nil {
		return err
	}
	return each(s.nodes, (*kubenode.Node).Join)
}

func (s *tale) plan() error {
	kubelet, err := controlplane.Binary("kubelet")
	if err != nil {
		return err
	}
	host, err := guests.NewMachine(s.folder, services)
	if err != nil {
		return err
	}
	members := []kubenode.Member{{Name: machine, Host: host}}
	for _, guest := range s.guests {
		members = append(members, kubenode.Member{Name: guest.Name, Host: guest})
	}
	s.nodes, err = kubenode.Plan(s.Ctx, kubenode.Cluster{
		Name: s.folder.Name(), Kubelet: kubelet, Kubeconfig: s.plane.NodeKubeconfig,
		ClientAuthority: s.plane.KubeletClients(), Service: apiserver.ServiceAddress, Pause: pause,
		Folders: map[string]string{shown: s.folder.Logs()},
	}, members...)
	return err
}

// load has each node take the images.
func (s *tale) load() error {
	return each(s.nodes, func(node *kubenode.Node) error {
		for _, archive := range archives {
			if err := node.Import(filepath.Join(apiserver.Repository(), "bin", "images", archive)); err != nil {
				return err
			}
		}
		return nil
	})
}

// each does something with all nodes at once.
func each(nodes []*kubenode.Node, do func(*kubenode.Node) error) error {
	problems := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, node := range nodes {
		all.Go(func() { problems[i] = do(node) })
	}
	all.Wait()
	return errors.Join(problems...)
}

// node is what the API server knows of a node.
func (s *tale) node(name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, s.client.Get(s.Ctx, client.ObjectKey{Name: name}, node)
}

// ready says whether a node is Ready, as it says itself.
func (s *tale) ready(name string) error {
	node, err := s.node(name)
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status == corev1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("%s is not Ready: %s: %s", name, condition.Reason, condition.Message)
	}
	return fmt.Errorf("%s doesn't say whether it is Ready", name)
}

// show prints what people want to know of a failure.
func (s *tale) show() {
	if s.plane == nil {
		return
	}
	for _, what := range []string{"nodes", "pods", "events"} {
		output, err := s.kubectl("get", what, "--all-namespaces", "--output=wide")
		fmt.Printf("\n%s:\n%s", what, output)
		if err != nil {
			fmt.Println(err)
		}
	}
}
