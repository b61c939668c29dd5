// Command e2e is `make e2e`: Stowage in the cluster that users have. etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler run as they come, and so do containerd and
// the kubelet on three nodes: this machine, in namespaces of the test's own, and two User
// Mode Linux guests. Stowage is installed from config/default, with images that were
// loaded into containerd; pods write and read.
//
// A story is a function over a scene: the bed that all share, and a namespace of its own.
// To add one, write it into a file of its own and name it in groups.
package main

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/test/guests"
	"github.com/stowage-dev/stowage/test/kubenode"
)

// mostTime is how long all of it may take, also on a machine that is busy.
const mostTime = 40 * time.Minute

// mostAtOnce is how many stories are told at once: more only slow each other down.
const mostAtOnce = 5

// groups are the stories. Those of one group are told at once: they disturb nobody but
// themselves. Groups are told one after another.
var groups = [][]tale{
	{
		{"readme", readme},
		{"image-grows", imageGrows},
		{"disk", disk},
		{"owners", owners},
		{"disk-grows", diskGrows},
		{"device-grows", deviceGrows},
		{"disk-as-device", diskAsDevice},
		{"replicas", replicas},
		{"share", share},
		{"inline", inline},
		{"room", room},
		{"directory", directory},
		{"image", image},
		{"image-as-device", imageAsDevice},
		{"ephemeral", ephemeral},
		{"parts", parts},
		{"readers", readers},
	},
	// A node that is drained beside one whose kubelet is away.
	{
		{"drained", drained},
		{"kubelet-restarts", kubeletRestarts},
		{"attachments", attachments},
	},
	{{"rebooted", rebooted}},
	// A node that is dead beside one whose agent is away.
	{
		{"died", died},
		{"agent-restarts", agentRestarts},
	},
	{{"handed-over", handedOver}},
	{{"uninstalled", uninstalled}},
	{{"left", left}},
}

func main() {
	// What the client libraries log while a server is away is no news here.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	guests.Run(guests.Test{Name: "e2e", MostTime: mostTime, Tell: tell, Services: services})
}

// services are what each node can be asked.
func services() ([]any, error) {
	return []any{&kubenode.Kubernetes{}, Disks{}, &Mounts{}, Signals{}}, nil
}

// tell tells all of it.
func tell(ctx context.Context, folder guests.Folder) error {
	b, err := newBed(ctx, folder)
	if err != nil {
		return err
	}
	b.start()
	b.install()
	for _, group := range groups {
		b.tell(ctx, group)
	}
	return b.end(ctx)
}
