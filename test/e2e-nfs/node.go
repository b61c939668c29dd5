package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/hack/uml"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
)

const (
	// agentDir is where a node's agent mounts things, in its memory.
	agentDir = "/run/agent"
	nodePort = "7000"
)

// Node is what a node can be asked to do, by net/rpc.
type Node struct {
	plugin nfs.Plugin
	load   *load
}

// Nothing is an answer that says nothing.
type Nothing struct{}

// Volume is one volume of one pod.
type Volume struct {
	Pod    string
	Volume corev1.PersistentVolume
	Access mount.Access
}

// File is a file of a pod's volume.
type File struct{ Pod, Volume, Name, Content string }

// serveNode is a guest's first process: it does what it is asked to until it is
// killed.
func serveNode(address, gateway string) error {
	if err := uml.Prepare(address, gateway); err != nil {
		return err
	}
	plugin, err := nfs.New(mount.NewApart(), filepath.Join(agentDir, "nfs"))
	if err != nil {
		return err
	}
	calls := rpc.NewServer()
	if err := calls.Register(&Node{plugin: plugin}); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", ":"+nodePort)
	if err != nil {
		return err
	}
	calls.Accept(listener)
	return errors.New("nobody asks any more")
}

// LoadModules gives the kernel an NFS client.
func (*Node) LoadModules(_ Nothing, _ *Nothing) error {
	return uml.LoadModules("nfs", "nfsv3", "nfsv4")
}

func dirOf(pod, volume string) string {
	return filepath.Join(agentDir, "pods", pod, "volumes", "kubernetes.io~nfs", volume)
}

// Publish makes a volume visible for a pod, and says how long that took.
func (n *Node) Publish(asked Volume, took *time.Duration) error {
	dir := dirOf(asked.Pod, asked.Volume.Name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	defer measure(took)()
	return n.plugin.Publish(context.Background(), volumes.Spec{PersistentVolume: &asked.Volume, Access: asked.Access}, dir)
}

// Unpublish takes it away.
func (n *Node) Unpublish(asked Volume, took *time.Duration) error {
	defer measure(took)()
	return n.plugin.Unpublish(context.Background(), dirOf(asked.Pod, asked.Volume.Name))
}

func measure(took *time.Duration) func() {
	started := time.Now()
	return func() { *took = time.Since(started) }
}

// Write writes a file as a process in a pod does, and makes sure that it is stored.
func (n *Node) Write(asked File, _ *Nothing) error {
	file, err := os.Create(n.pathOf(asked))
	if err != nil {
		return err
	}
	_, err = file.WriteString(asked.Content)
	return errors.Join(err, file.Sync(), file.Close())
}

// Read reads one.
func (n *Node) Read(asked File, content *string) error {
	read, err := os.ReadFile(n.pathOf(asked))
	*content = string(read)
	return err
}

// Exists says whether a volume of a pod has left anything on the node.
func (n *Node) Exists(asked Volume, exists *bool) error {
	_, err := os.Lstat(dirOf(asked.Pod, asked.Volume.Name))
	if *exists = err == nil; *exists || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Mounts is the NFS mounts of the node: "<mount point> <source> <type>".
func (*Node) Mounts(_ Nothing, mounts *[]string) error {
	table, err := mount.Kernel{}.Table()
	*mounts = []string{}
	for _, point := range table.Below(agentDir) {
		*mounts = append(*mounts, fmt.Sprintf("%s %s %s", point.Path, point.Source, point.FSType))
	}
	return err
}

func (n *Node) pathOf(file File) string {
	return filepath.Join(n.plugin.Path(dirOf(file.Pod, file.Volume)), file.Name)
}
