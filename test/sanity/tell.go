package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/cluster"
	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/story"
)

const (
	// machineName is the node that the machine itself is, guestName the guest's.
	machineName = "machine"
	guestName   = "node1"

	nfsPort = 2049
	// diskLimit is how many disks an instance of the smallest kind can have, beside none
	// to boot from.
	diskLimit = 16
	// machineDisk is the size of the disks that all volumes on the machine lie on.
	machineDisk = 40 * gibibyte
	// guestDisk is what the guest has for local volumes.
	guestDisk   = 4 * gibibyte
	guestMemory = "768M"
)

// tale is the story, with those who play in it.
type tale struct {
	*story.Story
	folder  guests.Folder
	stowage *guests.Stowage
	cloud   *cluster.Program
	server  *guests.NFSServer
	guest   *guests.Node
	// machine is the part that this process itself plays.
	machine Host
	runs    []run
}

// run is a suite that ran.
type run struct {
	subject Subject
	outcome Outcome
}

func tell(ctx context.Context, folder guests.Folder) error {
	s := &tale{Story: story.New(ctx), folder: folder}
	fmt.Println("\nA cluster, a cloud, an NFS server, and two nodes")
	s.Do("etcd, kube-apiserver and the manager start", s.startCluster)
	s.Do("the machine has disks of its own", s.mountDisks)
	s.Do("a cloud starts, whose disks are loop devices", s.startCloud)
	s.Do("an NFS server and a guest start", s.startGuest)
	s.Do("an agent starts on the machine, and its drivers are registered", func() error {
		return s.machine.start(s.Ctx, s.agentOf(machineName, ""))
	})
	s.Do("another one does in the guest", func() error {
		return s.guest.Ask("Host.Start", s.agentOf(guestName, guestRoot), &guests.Nothing{})
	})
	s.Do("a StorageBackend is made for each kind of storage", s.createBackends)
	for _, name := range []string{shareBackend, directoriesBackend, imagesBackend, xfsBackend, disksBackend} {
		s.Soon("backend "+name+" is Ready", func() error { return s.stowage.BackendIsReady(s.Ctx, name) })
	}
	if s.Err() == nil {
		s.tellSuites()
	}
	s.Do("nothing is mounted any more", s.nothingMounted)
	return s.verdict()
}

// mountDisks gives the machine file systems of its own for all that lies on it: they go
// with the test's mounts.
func (s *tale) mountDisks() error {
	for _, dir := range []string{s.machineDir(), s.base()} {
		disk, err := s.folder.Disk(filepath.Base(dir), machineDisk)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := guests.Commands(s.Ctx, "mkfs.ext4 -q "+disk, "mount -o loop "+disk+" "+dir); err != nil {
			return err
		}
	}
	return nil
}

// machineDir is where on the machine the kubelet, the agent and the cloud would have
// their folders.
func (s *tale) machineDir() string { return filepath.Join(s.folder.Memory(), "machine") }

// clusterDir holds the cluster, and base the local volumes.
func (s *tale) clusterDir() string { return filepath.Join(s.folder.Memory(), "cluster") }
func (s *tale) base() string       { return filepath.Join(s.clusterDir(), "disks") }

func (s *tale) startCluster() error {
	started, err := cluster.Start(s.Ctx, cluster.Options{
		Dir: s.clusterDir(), Address: guests.Address, Nodes: []string{machineName, guestName}, Register: asInstance,
		Step: func(string) (done func(error)) { return func(error) {} },
	})
	s.stowage = &guests.Stowage{Cluster: started}
	return err
}

func (s *tale) startCloud() error {
	path, err := cluster.ProgramPath("gce-mock")
	if err != nil {
		return err
	}
	address := "127.0.0.1:" + strconv.Itoa(cloudPort)
	s.cloud = cluster.NewProgram(cluster.ProgramOptions{
		Name: "gce-mock", Path: path, LogFile: s.folder.Log("gce-mock"), Ready: "http://" + address + "/_mock/healthz",
		Arguments: []string{
			"--listen=" + address, "--folder=" + filepath.Join(s.machineDir(), "cloud"), "--device-folder=" + s.devices(),
			"--project=" + cluster.CloudProject, "--zone=" + cluster.CloudZone, "--attach=loop", "--latency=20ms",
			"--instance=" + cluster.CloudZone + "/" + machineName + ":e2-micro",
		},
	})
	if err := s.cloud.Start(); err != nil {
		return err
	}
	return s.cloud.AwaitReady(s.Ctx)
}

// cloudPort is free: nothing else is in the test's network.
const cloudPort = 8585

func (s *tale) devices() string { return filepath.Join(s.machineDir(), "devices") }

func (s *tale) startGuest() error {
	err := guests.PrepareNFS(s.Ctx)
	if err == nil {
		s.server, err = guests.NewNFSServer(nfsPort, s.folder)
	}
	if err == nil {
		err = s.server.Start(s.Ctx)
	}
	if err != nil {
		return err
	}
	booted, err := guests.BootAs(s.Ctx, s.folder, 1, guests.Hardware{Memory: guestMemory, Disk: guestDisk})
	if err != nil {
		return err
	}
	s.guest = booted[0]
	return s.guest.Ask("Host.Prepare", s.base(), &guests.Nothing{})
}

func (s *tale) createBackends() error {
	base := s.stowage.Folder.Disks()
	return s.stowage.Create(s.Ctx, share(s.server),
		onDisks(base, directoriesBackend, stowagev1alpha1.LocalBackend{NodeSelector: onNode(machineName)}),
		onDisks(base, imagesBackend, stowagev1alpha1.LocalBackend{NodeSelector: onNode(guestName), Layout: stowagev1alpha1.LayoutImage, FSType: "ext4"}),
		onDisks(base, xfsBackend, stowagev1alpha1.LocalBackend{NodeSelector: onNode(machineName), Layout: stowagev1alpha1.LayoutImage, FSType: "xfs"}),
		inCloud(fmt.Sprintf("http://127.0.0.1:%d/compute/v1/", cloudPort)))
}
