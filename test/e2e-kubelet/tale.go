package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/story"
	"github.com/stowage-dev/stowage/test/testbed"
)

// shown is where nodes find a folder of the machine's.
const shown = "/run/shown"

// tale is the story, on its bed.
type tale struct {
	*story.Story
	testbed.Bed
}

func newTale(ctx context.Context, folder guests.Folder) *tale {
	return &tale{story.New(ctx), testbed.Bed{Folder: folder}}
}

func (s *tale) join() error {
	return s.Join(s.Ctx, testbed.Nodes{Services: services, Folders: map[string]string{shown: s.Folder.Logs()}})
}

// node is what the API server knows of a node.
func (s *tale) node(name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, s.Client.Get(s.Ctx, client.ObjectKey{Name: name}, node)
}

// show prints what people want to know of a failure.
func (s *tale) show() {
	if s.Plane == nil {
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
