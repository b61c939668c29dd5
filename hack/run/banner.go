package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

const banner = `
Stowage is running.

  manager      pid %-7d log %s, metrics %s
  node agent   pid %-7d log %s, metrics %s
  API server   %s, log %s
  gce-mock     pid %-7d log %s
               a cloud to try: %s
  local disks  %s

In another terminal:

  export KUBECONFIG=%s PATH=%s:$PATH

  # a claim of class local and a pod that uses it; then what became of them
  kubectl apply -f %s
  kubectl get storagebackend,pvc,pv,nodevolume

  # the claim's directory, as the pod sees it: write something
  %s

  # the pod goes, the data stays; the claim goes, and its data with it
  kubectl delete pod/writer --wait=false && kubectl delete pvc/data --wait=false

  # the same on a disk of the cloud, which is attached to the node
  kubectl apply -f %s
  kubectl wait pod/disk-writer --for=condition=stowage.dev/VolumesReady
  kubectl get pvc,pv,volumeattachment && ls -l %s

  # a live table: backends, room, what waits and why, and what is attached and mounted where
  kubectl stowage status --watch
  # the chain from a pod to its bytes
  kubectl stowage explain pod writer

Ctrl-C unmounts and stops everything. What happens from now on:

`

func printBanner(c *cluster.Cluster) {
	folder := c.Folder
	kubectl, _ := apiserver.Binary("kubectl") // it was used already
	built, _ := os.Executable()               // kubectl stowage is built beside it
	fmt.Printf(banner,
		c.Manager.PID(), near(c.Manager.LogFile), c.Manager.Metrics,
		c.Agent.PID(), near(c.Agent.LogFile), c.Agent.Metrics,
		c.Config.Host, near(folder.Log("control-plane")),
		c.Cloud.PID(), near(c.Cloud.LogFile), c.CloudEndpoint,
		near(folder.Disks()),
		quoted(folder.Kubeconfig(cluster.AdminUser)), quoted(filepath.Dir(kubectl)+":"+filepath.Dir(built)),
		quoted(filepath.Join(samplesDir(c), "local_claim.yaml")),
		lookInside(folder.AgentRoot(cluster.NodeName)),
		quoted(filepath.Join(samplesDir(c), "cloud_claim.yaml")), quoted(folder.Devices(cluster.NodeName)))
}

// lookInside is a command that writes to the mounted volume. Mounts in a
// namespace are seen from inside only.
func lookInside(agentRoot string) string {
	const wait = "kubectl wait pod/writer --for=condition=stowage.dev/VolumesReady && "
	look := fmt.Sprintf(`cd %s/pods/$(kubectl get pod writer -o jsonpath={.metadata.uid})/volumes/*/`+
		`$(kubectl get pvc data -o jsonpath={.spec.volumeName})/mount && date >> log && pwd && ls -l`, quoted(agentRoot))
	if cluster.InsideNamespace() {
		return fmt.Sprintf("%snsenter --user --mount --preserve-credentials --target %d sh -c '%s'", wait, os.Getpid(), look)
	}
	return wait + "(" + look + ")"
}

func quoted(path string) string {
	if strings.ContainsAny(path, " \t$&;()*?'<>|#~") {
		return `"` + strings.ReplaceAll(path, "$", `\$`) + `"`
	}
	return path
}

// near is a path as one would type it here.
func near(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || strings.HasPrefix(relative, "..") {
		return path
	}
	return relative
}
