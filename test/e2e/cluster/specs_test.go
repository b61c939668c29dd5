package cluster_test

import (
	. "github.com/onsi/ginkgo/v2"

	"github.com/stowage-dev/stowage/test/harness/kube"
)

// These disturb only themselves: several run at once.
var _ = Describe("", Label("volumes"), func() {
	spec("readme", "the quick start of README works as it is typed", readme)
	spec("plug-in", "kubectl stowage finds no fault, and reports without secrets", plugin)
	spec("image-grows", "a file system in a file on a node's disk grows while its pod writes", imageGrows, Label("slow"))
	spec("disk", "a disk of the cloud is attached to where its pod is, and follows it", disk)
	spec("owners", "pods that aren't root can write to what has their fsGroup", owners)
	spec("disk-grows", "a disk of the cloud grows at once, its file system when the node sees it", diskGrows, Label("slow"))
	spec("device-grows", "a disk that is a block device grows in its pod", deviceGrows)
	spec("disk-as-device", "a disk of the cloud is a block device on the node where the pod is", diskAsDevice)
	spec("replicas", "each pod of a StatefulSet has a volume of its own, and finds it again", replicas, Label("slow"))
	spec("share", "pods on two nodes write to one directory of an NFS server", share)
	spec("inline", "a pod that names a backend itself has a folder of its own on the share", inline)
	spec("room", "the scheduler sends no pod to a node without room for its claim", room)
	spec("directory", "a directory on a node's disk is made for a claim, and goes with it", directory)
	spec("image", "a file on a node's disk, with a file system in it, is a limit", image)
	spec("image-as-device", "a file on a node's disk is a block device of exactly its size", imageAsDevice)
	spec("ephemeral", "a pod's own volume comes and goes with it", ephemeral)
	spec("parts", "containers see parts of a volume", parts)
	spec("readers", "a pod that asks for a volume to read can't write to it, and others can", readers)
})

// These concern nodes, or all of Stowage: they run one after another, in this order, when
// all others have ended. One that fails doesn't keep the next from running.
var _ = Describe("", Serial, Ordered, ContinueOnFailure, func() {
	// A node that is drained beside one whose kubelet is away.
	together([]part{
		{"drained", "volumes that can leave a node follow their pods, and others wait for it", drained},
		{"kubelet-restarts", "pods write on while the kubelet is away", kubeletRestarts},
		{"attachments", "volumesAttached has the names by which kubelets know volumes", attachments},
	}, Label("node", "slow"))
	spec("rebooted", "pods of a node that lost its power have their volumes again", rebooted, Label("node", "slow"))
	// A node that is dead beside one whose agent is away.
	together([]part{
		{"died", "what can leave a dead node does so once it is out of service", died},
		{"agent-restarts", "pods write on while the node agent is away", agentRestarts},
	}, Label("node", "slow"))
	if overlay() == kube.BesideIt { // the other overlay begins where the first one is handed over to
		spec("handed-over", "Stowage takes over from kube-controller-manager, and back, while pods write", handedOver, Label("handover", "slow"))
	}
	if hasGoogleDriver() {
		spec("googles-driver", "a pod on a stock kubelet uses a disk made by Google's own driver through Stowage alone, without any sidecar", googlesDriver, Label("csi"))
	}
	if hasVelero() {
		spec("backed-up", "Velero restores what pods wrote, from snapshots and file by file", backedUp, Label("velero"))
	}
	spec("uninstalled", "volumes outlive Stowage, which goes on with them when it is back", uninstalled, Label("handover", "slow"))
	spec("left", "nothing of any volume is left", left, Label("volumes", "node", "handover", "velero"))
	stay()
})
