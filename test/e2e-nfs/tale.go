package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/story"
)

const (
	nodes = 2
	// silentAddress is one that nobody is at.
	silentAddress = "10.99.0.9"
	goodPort      = 2049
	otherPort     = 2050

	// soon is what a mount takes while all is well, on a machine that is busy. It is less
	// than the 30 s for which an agent waits for a server that hangs.
	soon = 25 * time.Second
)

// tale is the story, with those who play in it.
type tale struct {
	*story.Story
	folder      guests.Folder
	good, other *server
	nodes       [nodes + 1]*guests.Node
	stowage     *guests.Stowage
}

func newTale(ctx context.Context, folder guests.Folder) *tale {
	return &tale{Story: story.New(ctx), folder: folder}
}

// boot starts servers and nodes.
func (s *tale) boot() error {
	if err := guests.PrepareNFS(s.Ctx); err != nil {
		return err
	}
	for port, at := range map[int]**server{goodPort: &s.good, otherPort: &s.other} {
		made, err := newServer(port, s.folder)
		if err != nil {
			return err
		}
		*at = made
		if err := made.Start(s.Ctx); err != nil {
			return err
		}
	}
	booted, err := guests.Boot(s.Ctx, s.folder, nodes)
	copy(s.nodes[1:], booted)
	return err
}

// progress waits until the process of a node has stored more.
func (s *tale) progress(node *guests.Node) error {
	var before int64
	if err := node.Ask("Load.Stored", guests.Nothing{}, &before); err != nil {
		return err
	}
	return story.Eventually(s.Ctx, func() error {
		var now int64
		if err := node.Ask("Load.Stored", guests.Nothing{}, &now); err != nil {
			return err
		}
		if now < before+3 {
			return fmt.Errorf("%d lines are stored, after %d before", now, before)
		}
		return nil
	})
}

// stopLoad ends the process of a node, and says whether a file on the server has all
// that it stored.
func (s *tale) stopLoad(node *guests.Node, file string) error {
	var stored int64
	if err := node.Ask("Load.Stop", guests.Nothing{}, &stored); err != nil {
		return err
	}
	return guests.CheckLines(file, stored)
}

func nameOf(n int) string { return "lines-" + strconv.Itoa(n) }

// quickly says whether work takes no longer than it does while all is well.
func quickly(work func() error) error {
	started := time.Now()
	err := work()
	if took := time.Since(started); err == nil && took > soon {
		err = fmt.Errorf("it takes %s, more than %s", took.Round(time.Second/10), soon)
	}
	return err
}

// show prints what helps to understand a failure.
func (s *tale) show() {
	for _, node := range s.nodes {
		var stuck string
		if node != nil && node.Ask("Processes.Stuck", guests.Nothing{}, &stuck) == nil && stuck != "" {
			fmt.Printf("\n--- what processes of %s wait for\n%s\n", node.Name, stuck)
		}
	}
	s.showPods()
	logs, _ := filepath.Glob(filepath.Join(s.folder.Logs(), "*.log"))
	for _, log := range logs {
		const most = 2000
		content, _ := os.ReadFile(log) // one that can't be read is shown empty
		fmt.Printf("\n--- the end of %s\n%s\n", filepath.Base(log), content[max(0, len(content)-most):])
	}
}

func (s *tale) showPods() {
	if s.stowage == nil {
		return
	}
	pods := &corev1.PodList{}
	err := s.stowage.Client.List(s.Ctx, pods)
	for _, pod := range pods.Items {
		fmt.Printf("\n--- pod %s on %s, deletion %v: %+v\n", pod.Name, pod.Spec.NodeName, pod.DeletionTimestamp, pod.Status.Conditions)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Println("\n--- listing pods:", err)
	}
}
