// Command node-agent is Stowage's program on every node: it makes and removes the volumes of the
// local backend there, and mounts volumes. These are the volumes that the kubelet asks for or,
// without a kubelet, those of the node's pods.
package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/program"
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
CSI drivers of other projects register in <root-dir>/plugins_registry, as with a
kubelet, and their volumes are mounted, too.
Other types are reported on the pod. The agent then uses the node's own
credential: a kubeconfig whose user is system:node:<node name> in group
system:nodes.

Volumes then appear in <root-dir>/pods/<pod uid>/volumes, and what each container is
to see in <root-dir>/pods/<pod uid>/containers/<container>/mounts.json.`

func main() {
	remote.ServeCall()
	options := &options{}
	flags := pflag.NewFlagSet("node-agent", pflag.ContinueOnError)
	options.addFlags(flags)
	options.Parse(flags, about, os.Args[1:])
	if err := options.check(); err != nil {
		program.Fail(err)
	}
	log := options.Logger()
	ctrl.SetLogger(log)
	klog.SetLogger(log)
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
	if err == nil {
		err = program.ServeMetrics(metrics.Registry)
	}
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
