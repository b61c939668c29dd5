package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/internal/workers"
)

const (
	defaultResync = 15 * time.Minute
	leastResync   = time.Minute

	defaultAttachmentCheck = time.Minute
	leastAttachmentCheck   = 10 * time.Second

	defaultForceDetach = 6 * time.Minute

	metricsPort = 8080
	probePort   = 8081
)

type options struct {
	program.Options
	scope                   string
	bindSnapshots           bool
	leaderElect             bool
	leaderElectionNamespace string
	localBase               string
	nfsMounts               string
	csiControllers          map[string]string
	csiSnapshotterDrivers   []string
	resync                  time.Duration
	attachmentCheck         time.Duration
	forceDetachAfter        time.Duration
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.scope, "scope", string(reconciler.ClassesScope),
		"Which claims to act on: classes (those of Stowage's own classes, beside kube-controller-manager)\n"+
			"or cluster (every claim, instead of kube-controller-manager's volume controllers).")
	flags.BoolVar(&o.bindSnapshots, "bind-snapshots", false,
		"Make and bind the contents of VolumeSnapshots and VolumeGroupSnapshots, too, of all drivers,\n"+
			"instead of the stock snapshot-controller, which must not run beside it. Needs --scope=cluster.")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "Act only while holding a lease, so that several managers can run.")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "",
		"Namespace of the lease, of the CSIStorageCapacities that give the scheduler the free space of nodes\n"+
			"and CSI drivers, and of Secrets with credentials. Default: the pod's own; needed outside a cluster.")
	flags.StringVar(&o.localBase, "local-base", "/var/lib/stowage",
		"Folder on every node below which local backends are. The node agents need the same.")
	flags.StringVar(&o.nfsMounts, "nfs-mounts", "",
		"Folder in which shares of NFSv4-only servers are mounted, each under its StorageBackend's name.\n"+
			"Shares that are not mounted there are reached by NFSv3, without any mount.")
	flags.StringToStringVar(&o.csiControllers, "csi-controllers", nil,
		"StorageBackends of Stowage's own drivers that are served by CSI, for tools that speak it, each as\n"+
			"NAME=SOCKET with an absolute path. Claims don't need it.")
	flags.StringSliceVar(&o.csiSnapshotterDrivers, "csi-snapshotter-drivers", nil,
		"Stowage's own drivers whose VolumeSnapshotContents the stock csi-snapshotter serves, on a socket of\n"+
			"--csi-controllers. Stowage goes on with those that it has begun.")
	flags.DurationVar(&o.resync, "resync", defaultResync,
		"How often every object is reconciled without an event. Nothing waits for it: it is a net for\n"+
			"missed events.")
	flags.DurationVar(&o.attachmentCheck, "attachment-check-interval", defaultAttachmentCheck,
		"How often attachments in backends are compared with VolumeAttachments.")
	flags.DurationVar(&o.forceDetachAfter, "force-detach-after", defaultForceDetach,
		"How long a node must have been not Ready, or gone, until volumes of drivers other than Stowage's are\n"+
			"taken from it (--scope=cluster). Stowage's own: attachment.forceDetachAfter of the StorageBackend.")
	o.AddFlags(flags, metricsPort, probePort, workers.Claims, workers.Volumes, workers.Attachments, workers.Nodes)
}

// check returns an error, for people, where flags don't fit each other, or have a value that can't be.
func (o *options) check() error {
	scope := reconciler.Scope(o.scope)
	if scope != reconciler.ClassesScope && scope != reconciler.ClusterScope {
		return fmt.Errorf("--scope is classes or cluster, not %q", o.scope)
	}
	if o.bindSnapshots && scope != reconciler.ClusterScope {
		return fmt.Errorf("--bind-snapshots needs --scope=cluster, not --scope=%s: run the stock snapshot-controller beside it", scope)
	}
	if !filepath.IsAbs(o.localBase) {
		return fmt.Errorf("--local-base is an absolute path, not %q", o.localBase)
	}
	if o.resync < leastResync {
		return fmt.Errorf("--resync is at least %s, not %s", leastResync, o.resync)
	}
	if o.attachmentCheck < leastAttachmentCheck {
		return fmt.Errorf("--attachment-check-interval is at least %s, not %s", leastAttachmentCheck, o.attachmentCheck)
	}
	if o.forceDetachAfter < 0 {
		return fmt.Errorf("--force-detach-after is not negative, as %s is", o.forceDetachAfter)
	}
	for _, driver := range o.csiSnapshotterDrivers {
		if !backend.IsOurs(driver) {
			return fmt.Errorf("--csi-snapshotter-drivers: %.253q is none of Stowage's own drivers: it can have its csi-snapshotter without a StorageBackend", driver)
		}
	}
	return o.checkSockets()
}

// checkSockets returns an error where two StorageBackends would be served on one socket.
func (o *options) checkSockets() error {
	of := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(o.csiControllers)) {
		socket := filepath.Clean(o.csiControllers[name])
		if other, taken := of[socket]; taken {
			return fmt.Errorf("--csi-controllers: %s and %s have the same socket, %s: give each its own", other, name, socket)
		}
		of[socket] = name
	}
	return nil
}

// namespace returns the manager's own namespace; empty if neither a flag nor the pod names it.
func (o *options) namespace() string {
	if o.leaderElectionNamespace != "" {
		return o.leaderElectionNamespace
	}
	name, err := os.ReadFile(podNamespace)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// podNamespace is the file with the name of a pod's own namespace.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
