package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/internal/workers"
)

const (
	metricsPort = 8082
	probePort   = 8083
)

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
	o.AddFlags(flags, metricsPort, probePort, workers.NodeVolumes, workers.Pods)
}

// check returns an error that names the wrong flag. It also cleans the paths.
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

// Folders of the agent's root directory.
const (
	// stagedDir has a folder for each driver, with the records of what it staged.
	stagedDir = "staged"
	// nfsDir is where NFS shares are mounted once for all pods.
	nfsDir = "nfs"
	// inlineDir has the records of pods' own volumes: on which share each is, and where.
	inlineDir = "inline-nfs"
	// earlierDiskDir is where agents of an earlier version mounted disks once for all pods.
	earlierDiskDir = "disks"
)

// records is the folder with a driver's records.
func (o *options) records(driver string) string { return filepath.Join(o.rootDir, stagedDir, driver) }
