package main

import (
	"context"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/story"
)

const nodes = 2

// tale is the story, with those who play in it.
type tale struct {
	*story.Story
	folder  guests.Folder
	cloud   *cloud
	watcher *watcher
	nodes   [nodes + 1]*guests.Node
	stowage *guests.Stowage
	// data is the claim that most of it is about, and spare one of the hasty backend.
	data, spare *corev1.PersistentVolumeClaim
}

func newTale(ctx context.Context, folder guests.Folder) *tale {
	return &tale{Story: story.New(ctx), folder: folder}
}

// boot starts the cloud and the nodes.
func (s *tale) boot() error {
	booted, err := guests.Boot(s.Ctx, s.folder, nodes)
	if err != nil {
		return err
	}
	var names []string
	for i, node := range booted {
		s.nodes[i+1] = node
		names = append(names, node.Name)
	}
	if s.cloud, err = newCloud(s.Ctx, s.folder, names...); err != nil {
		return err
	}
	s.watcher = watch(s.Ctx, filepath.Join(s.cloud.folder, "images"))
	return nil
}

// startStowage starts all of it, on nodes that are instances of the cloud.
func (s *tale) startStowage() (err error) {
	s.stowage, err = guests.StartOtherStowage(s.Ctx, s.folder, s.nodes[1:], guests.Differences{
		Register: func(node *corev1.Node) {
			node.Spec.ProviderID = "gce://" + project + "/" + zone + "/" + node.Name
			node.Labels[corev1.LabelTopologyZone] = zone
			node.Labels[corev1.LabelTopologyRegion] = zone[:strings.LastIndex(zone, "-")]
		},
		AgentFlags: func(node string) []string {
			return []string{"--device-dir=" + filepath.Join(uml.MachineDir, s.cloud.devicesOf(node))}
		},
	})
	return err
}
