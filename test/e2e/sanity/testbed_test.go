package sanity_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
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

// testbed is a cluster, a cloud, an NFS server and two nodes, with what ran on them.
type testbed struct {
	folder  guest.Folder
	stowage *guest.Stowage
	// clouds are two, in which the machine is an instance of another type: no type that takes few disks takes hyperdisks, too.
	clouds []*cluster.Program
	server *guest.NFSServer
	guest  *guest.Node
	// machine is the part that this process itself plays.
	machine Host
	// outcomes are how suites end, by their subjects' names.
	outcomes map[string]chan Outcome
}

func (s *testbed) start(ctx context.Context, folder guest.Folder) {
	s.folder = folder
	step := func(what string, do func(context.Context) error) {
		scenario.Step(what, func() error { return do(ctx) })
	}
	// The manager listens on sockets there as soon as it starts.
	step("the machine has a disk of its own", func(ctx context.Context) error { return s.mountDisk(ctx, s.machineDir()) })
	step("etcd, kube-apiserver and the manager start", s.startCluster)
	step("the machine has a disk for local volumes", func(ctx context.Context) error { return s.mountDisk(ctx, s.base()) })
	step("two clouds start, whose disks are loop devices", s.startClouds)
	step("an NFS server and a guest start", s.startGuest)
	step("an agent starts on the machine, and its drivers are registered", func(ctx context.Context) error {
		agent, err := s.agentOf(machineName, "")
		return errors.Join(err, s.machine.start(ctx, agent))
	})
	step("another one does in the guest", func(ctx context.Context) error {
		agent, err := s.agentOf(guestName, guestRoot)
		return errors.Join(err, s.guest.Call(ctx, "Host.Start", agent, &guest.Nothing{}))
	})
	step("a StorageBackend is made for each kind of storage", s.createBackends)
	for _, name := range []string{shareBackend, directoriesBackend, imagesBackend, xfsBackend, disksBackend, hyperdisksBackend} {
		scenario.Soon(ctx, "backend "+name+" is Ready", func() error { return s.stowage.BackendIsReady(ctx, name) })
	}
}

// mountDisk gives the machine a file system of its own for all that lies in a folder: it goes
// with the test's mounts.
func (s *testbed) mountDisk(ctx context.Context, dir string) error {
	disk, err := s.folder.Disk(filepath.Base(dir), machineDisk)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return guest.Commands(ctx, "mkfs.ext4 -q "+disk, "mount -o loop "+disk+" "+dir)
}

// machineDir is where on the machine the kubelet, the agent and the cloud would have
// their folders.
func (s *testbed) machineDir() string { return filepath.Join(s.folder.Memory(), "machine") }

// clusterDir holds the cluster, and base the local volumes.
func (s *testbed) clusterDir() string { return filepath.Join(s.folder.Memory(), "cluster") }
func (s *testbed) base() string       { return filepath.Join(s.clusterDir(), "disks") }

func (s *testbed) startCluster(ctx context.Context) error {
	started, err := cluster.Start(ctx, cluster.Options{
		Dir: s.clusterDir(), Address: guest.Address, Nodes: []string{machineName, guestName}, Register: asInstance, ManagerFlags: s.socketFlags(),
		Step: func(string) (done func(error)) { return func(error) {} },
	})
	s.stowage = &guest.Stowage{Cluster: started}
	return err
}

// socketFlags have the manager serve the backends of the machine's volumes by CSI.
func (s *testbed) socketFlags() (flags []string) {
	for _, name := range []string{directoriesBackend, xfsBackend, disksBackend, hyperdisksBackend} {
		flags = append(flags, "--csi-controllers="+name+"="+s.socket(name))
	}
	return flags
}

// socket is where the manager serves a backend.
func (s *testbed) socket(backend string) string {
	return filepath.Join(s.machineDir(), backend+".sock")
}

func (s *testbed) startClouds(ctx context.Context) error {
	for port, machineType := range map[int]string{cloudPort: "e2-micro", hyperdisksPort: "n4-standard-2"} {
		address, name := "127.0.0.1:"+strconv.Itoa(port), "gce-mock-"+machineType
		started := cluster.NewCloud(address, s.folder.Log(name),
			"--folder="+filepath.Join(s.machineDir(), name), "--device-folder="+s.devices(),
			"--project="+cluster.CloudProject, "--zone="+cluster.CloudZone, "--attach=loop", "--latency=20ms",
			"--instance="+cluster.CloudZone+"/"+machineName+":"+machineType)
		s.clouds = append(s.clouds, started)
		if err := started.StartReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// The ports are free: nothing else is in the test's network.
const cloudPort, hyperdisksPort = 8585, 8586

func (s *testbed) devices() string { return filepath.Join(s.machineDir(), "devices") }

func (s *testbed) startGuest(ctx context.Context) error {
	err := guest.PrepareNFS(ctx)
	if err == nil {
		s.server, err = guest.NewNFSServer(nfsPort, s.folder)
	}
	if err == nil {
		err = s.server.Start(ctx)
	}
	if err != nil {
		return err
	}
	booted, err := guest.Boot(ctx, s.folder, 1, guest.Hardware{Memory: guestMemory, Disk: guestDisk})
	if err != nil {
		return err
	}
	s.guest = booted[0]
	return s.guest.Call(ctx, "Host.Prepare", s.base(), &guest.Nothing{})
}

func (s *testbed) createBackends(ctx context.Context) error {
	base := s.stowage.Folder.Disks()
	return s.stowage.Create(ctx, share(s.server),
		onDisks(base, directoriesBackend, stowagev1alpha1.LocalBackend{NodeSelector: onNode(machineName)}),
		onDisks(base, imagesBackend, stowagev1alpha1.LocalBackend{NodeSelector: onNode(guestName), Layout: stowagev1alpha1.LayoutImage, FSType: "ext4"}),
		onDisks(base, xfsBackend, stowagev1alpha1.LocalBackend{NodeSelector: onNode(machineName), Layout: stowagev1alpha1.LayoutImage, FSType: "xfs"}),
		inCloud(disksBackend, cloudPort, "pd-balanced"), inCloud(hyperdisksBackend, hyperdisksPort, "hyperdisk-balanced"))
}
