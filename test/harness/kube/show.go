package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/guest"
)

// kubeletRoot is where kubelets have the volumes of pods.
const kubeletRoot = "/var/lib/kubelet"

// lookTime is how long a node has to say what it has mounted, or runs.
const lookTime = 10 * time.Second

var kinds = []string{
	"nodes", "csinodes", "csidrivers", "storageclasses", "storagebackends", "nodevolumes", "nodedisks", "csistoragecapacities",
	"persistentvolumes", "persistentvolumeclaims", "volumeattachments", "pods", "daemonsets", "deployments", "statefulsets", "events",
}

// Describe is what explains a failure in a namespace: its pods, claims, volumes,
// attachments and events. All objects, what Stowage's pods logged, and what the nodes have
// mounted and run, are kept below the folder of logs then, in one of a name.
func (c *Cluster) Describe(ctx context.Context, namespace, name string) string {
	for _, kind := range kinds {
		c.keep(ctx, filepath.Join(name, kind+".yaml"), "get", kind, "--all-namespaces", "--output=yaml")
	}
	c.keepLogs(ctx, name)
	c.write(filepath.Join(name, "nodes.txt"), c.DescribeNodes(ctx))
	var all strings.Builder
	for _, arguments := range [][]string{
		{"get", "pods,pvc", "--namespace=" + namespace, "--output=wide"},
		{"get", "events", "--namespace=" + namespace, "--sort-by=.metadata.creationTimestamp"},
		{"get", "nodes,storagebackends,pv,volumeattachments", "--output=wide"},
		{"get", "pods", "--namespace=" + System, "--output=wide"},
	} {
		output, err := c.Kubectl(ctx, "", arguments...)
		if err != nil {
			output += err.Error()
		}
		fmt.Fprintln(&all, output)
	}
	return all.String()
}

// keepLogs keeps what the containers of Stowage's pods printed, of those before a
// restart, too.
func (c *Cluster) keepLogs(ctx context.Context, folder string) {
	pods, err := c.Kubectl(ctx, "", "get", "pods", "--namespace="+System, "--output=name")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, pod := range strings.Fields(pods) {
		name := strings.TrimPrefix(pod, "pod/")
		c.keep(ctx, filepath.Join(folder, name+".log"), "logs", "--namespace="+System, pod, "--all-containers")
		c.keep(ctx, filepath.Join(folder, name+"-previous.log"), "logs", "--namespace="+System, pod, "--all-containers", "--previous")
	}
}

// DescribeNodes is what each node has mounted for pods, what its processes wait for in the
// kernel, and all of these.
func (c *Cluster) DescribeNodes(ctx context.Context) string {
	var text strings.Builder
	for _, node := range c.Nodes {
		// One that answers late, or never, leaves time for the others.
		ask := func(method string, request, answer any) error {
			return node.Host.CallWithin(ctx, lookTime, method, request, answer)
		}
		var mounts []string
		var stuck, all string
		err := ask("Files.Mounts", kubeletRoot, &mounts)
		if err == nil {
			err = errors.Join(ask("Processes.Stuck", guest.Nothing{}, &stuck), ask("Processes.All", guest.Nothing{}, &all))
		}
		if err != nil {
			all += err.Error()
		}
		guest.DumpText(&text, node.Name, strings.Join(mounts, "\n")+"\n\n"+stuck+"\n"+all)
	}
	return text.String()
}

func (c *Cluster) keep(ctx context.Context, name string, arguments ...string) {
	if output, err := c.Kubectl(ctx, "", arguments...); err == nil {
		c.write(name, output)
	}
}

func (c *Cluster) write(name, output string) {
	path := filepath.Join(c.Folder.Logs(), "objects", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(output), 0o644)); err != nil {
		fmt.Println(err)
	}
}

// Stay prints how to look at the cluster, and waits until the suite is ended.
func (c *Cluster) Stay(ctx context.Context) error {
	kubectl, err := apiserver.Binary("kubectl")
	if err != nil {
		return err
	}
	fmt.Printf("\nThe cluster stays until Ctrl-C. A shell in it, with kubectl and kubectl stowage:\n\n"+
		"  nsenter -t $(pgrep -o -f 'inside .*/%s') -m -n -p env KUBECONFIG=%s PATH=%s:%s:$PATH bash\n\n"+
		"Its StorageBackends have servers: kubectl get storagebackends. Its nodes have the image %s and those of IMAGES, and reach no registry.\n",
		c.Folder.Name(), c.Kubeconfig(), filepath.Dir(kubectl), filepath.Join(apiserver.Repository(), "bin"), Busybox)
	return c.Folder.AwaitEnd(ctx)
}
