package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

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
	// data is the claim that most of it is about.
	data *corev1.PersistentVolumeClaim
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

// show prints what helps to understand a failure.
func (s *tale) show() {
	for _, node := range s.nodes {
		var mounts []string
		if node != nil && node.Ask("Files.Mounts", guests.AgentRoot, &mounts) == nil {
			fmt.Printf("\n--- mounts of %s\n%s\n", node.Name, strings.Join(mounts, "\n"))
		}
	}
	s.showCloud()
	s.showObjects()
	logs, _ := filepath.Glob(filepath.Join(s.folder.Logs(), "*.log"))
	if s.stowage != nil {
		logs = append(logs, s.stowage.Manager.LogFile)
	}
	for _, log := range logs {
		content, _ := os.ReadFile(log) // one that can't be read is shown empty
		fmt.Printf("\n--- the end of %s\n%s\n", filepath.Base(log), ending(string(content)))
	}
}

// ending is the end of a log, without the calls that this program itself makes all
// the time.
func ending(log string) string {
	const most = 4000
	var kept []string
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `"zoneOperations.list"`) && !strings.Contains(line, `"instances.list"`) {
			kept = append(kept, line)
		}
	}
	text := strings.Join(kept, "")
	return text[max(0, len(text)-most):]
}

func (s *tale) showCloud() {
	if s.cloud == nil {
		return
	}
	attached, err := s.cloud.attachedTo(s.Ctx)
	fmt.Printf("\n--- what the cloud has attached: %v %v\n", attached, err)
}

func (s *tale) showObjects() {
	if s.stowage == nil {
		return
	}
	pods, nodes, attachments := &corev1.PodList{}, &corev1.NodeList{}, &storagev1.VolumeAttachmentList{}
	err := errors.Join(s.stowage.Client.List(s.Ctx, pods), s.stowage.Client.List(s.Ctx, nodes), s.stowage.Client.List(s.Ctx, attachments))
	for _, pod := range pods.Items {
		fmt.Printf("\n--- pod %s on %s, deletion %v: %+v\n%s", pod.Name, pod.Spec.NodeName, pod.DeletionTimestamp, pod.Status.Conditions,
			s.stowage.EventsOf(s.Ctx, pod.Name))
	}
	for _, node := range nodes.Items {
		fmt.Printf("\n--- node %s: in use %v, attached %v, taints %v\n", node.Name, node.Status.VolumesInUse, node.Status.VolumesAttached, node.Spec.Taints)
	}
	for _, attachment := range attachments.Items {
		fmt.Printf("\n--- attachment %s of %s on %s, deletion %v, finalizers %v: %+v\n", attachment.Name, *attachment.Spec.Source.PersistentVolumeName,
			attachment.Spec.NodeName, attachment.DeletionTimestamp, attachment.Finalizers, attachment.Status)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Println("\n--- listing objects:", err)
	}
}
