// Command node-agent is Stowage's program on every node: it makes and removes
// the volumes of the local backend there, and mounts volumes: those that the kubelet asks
// for, or, where there is none, those of the node's pods.
package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/program"
)

const (
	metricsPort = 8082
	probePort   = 8083
)

const about = `The Stowage node agent makes and removes local volumes on the disk of one node.

With --kubelet-dir it serves Stowage's CSI drivers to the node's kubelet, at
<kubelet-dir>/plugins/<driver>/csi.sock, and has them registered there. Pods'
directories are the kubelet's; what the agent must remember of volumes is in
<root-dir>/staged. Stopping the agent unmounts nothing.

With --follow-pods instead it mounts the volumes of the node's pods, for a node
without a kubelet: claims of the local, NFS and GCE backends and of hostPath,
local and nfs volumes, generic ephemeral volumes, emptyDir, configMap, secret,
downwardAPI, projected, hostPath, nfs, and csi of NFS backends that allow it.
Pods are told of other types. It then uses the node's own credential: a
kubeconfig whose user is system:node:<node name> in group system:nodes.

Volumes then appear in <root-dir>/pods/<pod uid>/volumes, and what each container is
to see in <root-dir>/pods/<pod uid>/containers/<container>/mounts.json.`

// options are the agent's flags.
type options struct {
	program.Options
	nodeName    string
	followPods  bool
	kubeletDir  string
	rootDir     string
	deviceDir   string
	maxDisks    int32
	localBase   string
	recycleRoot string
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.nodeName, "node-name", os.Getenv("NODE_NAME"),
		"Name of the Node object that this machine is. Required. Default: $NODE_NAME.")
	flags.BoolVar(&o.followPods, "follow-pods", false,
		"Mount the volumes of the node's pods. Only for nodes without a kubelet; refused on others.")
	flags.StringVar(&o.kubeletDir, "kubelet-dir", "",
		"Folder of this machine's kubelet, as the kubelet's --root-dir says it. Its CSI drivers are served there.\n"+
			"Default: none are. It excludes --follow-pods.")
	flags.StringVar(&o.rootDir, "root-dir", "/var/lib/stowage-agent",
		"Folder in which pods' volumes are mounted with --follow-pods, and in which is recorded what is staged.\n"+
			"It must outlive the agent.")
	flags.StringVar(&o.deviceDir, "device-dir", "/dev/disk/by-id",
		"Folder with the links google-<name> to disks that are attached to this machine. In /dev,\n"+
			"disks are asked for their serials; elsewhere, as with gce-mock, the folder's files serial/<device> have them.")
	flags.Int32Var(&o.maxDisks, "max-disks", 0,
		"How many disks of gce backends this machine takes: schedulers give it no more. Default: 0,\n"+
			"as many as Google documents for the machine type in the Node's label node.kubernetes.io/instance-type.")
	flags.StringVar(&o.localBase, "local-base", "/var/lib/stowage",
		"Folder below which every local volume of this node lies. It must exist.")
	flags.StringVar(&o.recycleRoot, "recycle-root", "",
		"Folder below which static volumes of policy Recycle are emptied, once their claim is gone.\n"+
			"Default: none is. It must not meet the other folders.")
	o.AddFlags(flags, metricsPort, probePort)
}

// check says which flag is wrong.
func (o *options) check() error {
	switch {
	case o.nodeName == "":
		return errors.New("--node-name is required: the name of this machine's Node object")
	case !filepath.IsAbs(o.rootDir) || filepath.Clean(o.rootDir) == "/":
		return errors.New("--root-dir must be an absolute path, and not /")
	case !filepath.IsAbs(o.localBase) || filepath.Clean(o.localBase) == "/":
		return errors.New("--local-base must be an absolute path, and not /")
	case o.maxDisks < 0:
		return errors.New("--max-disks must not be negative: 0 means that it goes by the machine type")
	case !filepath.IsAbs(o.deviceDir):
		return errors.New("--device-dir must be an absolute path")
	}
	o.deviceDir = filepath.Clean(o.deviceDir)
	o.rootDir, o.localBase = filepath.Clean(o.rootDir), filepath.Clean(o.localBase)
	if within, err := filepath.Rel(o.rootDir, o.localBase); err != nil || filepath.IsLocal(within) {
		return errors.New("--local-base must not lie in --root-dir, which holds what goes with its pods")
	}
	if err := o.checkKubeletDir(); err != nil {
		return err
	}
	return o.checkRecycleRoot()
}

func (o *options) checkKubeletDir() error {
	switch {
	case o.kubeletDir == "":
		return nil
	case o.followPods:
		return errors.New("--kubelet-dir and --follow-pods exclude each other: one of kubelet and agent looks after pods")
	case !filepath.IsAbs(o.kubeletDir) || filepath.Clean(o.kubeletDir) == "/":
		return errors.New("--kubelet-dir must be an absolute path, and not /")
	}
	o.kubeletDir = filepath.Clean(o.kubeletDir)
	return nil
}

// checkRecycleRoot keeps what this agent made out of what it empties.
func (o *options) checkRecycleRoot() error {
	if o.recycleRoot == "" {
		return nil
	}
	if !filepath.IsAbs(o.recycleRoot) || filepath.Clean(o.recycleRoot) == "/" {
		return errors.New("--recycle-root must be an absolute path, and not /")
	}
	o.recycleRoot = filepath.Clean(o.recycleRoot)
	for _, other := range []string{o.rootDir, o.localBase, o.kubeletDir} {
		if other == "" {
			continue
		}
		for _, pair := range [][2]string{{o.recycleRoot, other}, {other, o.recycleRoot}} {
			if within, err := filepath.Rel(pair[0], pair[1]); err != nil || filepath.IsLocal(within) {
				return errors.New("--recycle-root must not lie in --root-dir, --local-base or --kubelet-dir, or around them: nothing of theirs may be emptied")
			}
		}
	}
	return nil
}

func main() {
	remote.ServeCall()
	options := &options{}
	flags := pflag.NewFlagSet("node-agent", pflag.ContinueOnError)
	options.addFlags(flags)
	options.Parse(flags, about, os.Args[1:])
	if err := options.check(); err != nil {
		program.Fail(err)
	}
	ctrl.SetLogger(options.Logger())
	if err := run(ctrl.SetupSignalHandler(), options); err != nil {
		program.Fail(err)
	}
}

// run runs the agent until its context ends.
func run(ctx context.Context, options *options) error {
	if options.followPods || options.kubeletDir != "" {
		if err := (mount.Kernel{}).Check(); err != nil {
			return err
		}
	}
	mgr, err := newManager(options)
	if err != nil {
		return err
	}
	if err := addControllers(ctx, mgr, options); err != nil {
		return err
	}
	if !remote.HasProgram() {
		ctrl.Log.Info("stowage-mount isn't beside this program: calls to NFS servers work without it, and take ten times the memory")
	}
	ctrl.Log.Info("starting", "version", program.Version(), "node", options.nodeName, "followPods", options.followPods)
	return mgr.Start(ctx)
}
