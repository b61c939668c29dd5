package cluster_test

import (
	. "github.com/onsi/ginkgo/v2"

	"github.com/stowage-dev/stowage/test/harness/kube"
)

// These disturb only themselves: several run at once.
var _ = Describe("", Label("volumes"), func() {
	story("readme", "the quick start of README works as it is typed", readme)
	story("image-grows", "a file system in a file on a node's disk grows while its pod writes", imageGrows, Label("slow"))
	story("disk", "a disk of the cloud is attached to where its pod is, and follows it", disk)
	story("owners", "pods that aren't root can write to what has their fsGroup", owners)
	story("disk-grows", "a disk of the cloud grows at once, its file system when the node sees it", diskGrows, Label("slow"))
	story("device-grows", "a disk that is a block device grows in its pod", deviceGrows)
	story("disk-as-device", "a disk of the cloud is a block device on the node where the pod is", diskAsDevice)
	story("replicas", "each pod of a StatefulSet has a volume of its own, and finds it again", replicas, Label("slow"))
	story("share", "pods on two nodes write to one directory of an NFS server", share)
	story("inline", "a pod that names a backend itself has a folder of its own on the share", inline)
	story("room", "the scheduler sends no pod to a node without room for its claim", room)
	story("directory", "a directory on a node's disk is made for a claim, and goes with it", directory)
	story("image", "a file on a node's disk, with a file system in it, is a limit", image)
	story("image-as-device", "a file on a node's disk is a block device of exactly its size", imageAsDevice)
	story("ephemeral", "a pod's own volume comes and goes with it", ephemeral)
	story("parts", "containers see parts of a volume", parts)
	story("readers", "a pod that asks for a volume to read can't write to it, and others can", readers)
})

// These concern nodes, or all of Stowage: they run one after another, in this order, when
// all others have ended. One that fails doesn't keep the next from running.
var _ = Describe("", Serial, Ordered, ContinueOnFailure, func() {
	// A node that is drained beside one whose kubelet is away.
	together([]part{
		{"drained", "volumes that can leave a node follow their pods, and others wait for it", drained},
		{"kubelet-restarts", "pods write on while the kubelet is away", kubeletRestarts},
		{"attachments", "nodes are told of volumes by the names that kubelets know", attachments},
	}, Label("node", "slow"))
	story("rebooted", "pods of a node that lost its power have their volumes again", rebooted, Label("node", "slow"))
	// A node that is dead beside one whose agent is away.
	together([]part{
		{"died", "what can leave a dead node does so once it is out of service", died},
		{"agent-restarts", "pods write on while the node agent is away", agentRestarts},
	}, Label("node", "slow"))
	if overlay() == kube.BesideIt { // the other overlay begins where the first one is handed over to
		story("handed-over", "Stowage takes over from kube-controller-manager, and back, while pods write", handedOver, Label("handover", "slow"))
	}
	story("uninstalled", "volumes outlive Stowage, which goes on with them when it is back", uninstalled, Label("handover", "slow"))
	story("left", "nothing of any volume is left", left, Label("volumes", "node", "handover"))
	stay()
})
