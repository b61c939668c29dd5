package attach_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/stowage-dev/stowage/internal/attach"
)

// pair is a volume on a node.
type pair struct {
	node   string
	volume int
}

// cluster is nodes with kubelets, volumes, drivers that attach them, and what the API
// server stores of all that. It fails a test in which a mounted volume is detached, or a
// volume is on two nodes.
type cluster struct {
	*rapid.T
	volumes []attach.Volume
	// older is true if the driver attaches only for the oldest attachment, and checks the
	// node before it detaches: ours does. Others execute every attachment.
	older bool

	// What the API server stores. Objects are replaced, never changed.
	nodes       map[string]*corev1.Node
	pods        map[pair]bool
	attachments map[string]*storagev1.VolumeAttachment
	version     int
	// history is the state after each write.
	history []snapshot

	// The real state, whatever the objects say.
	attached, mounted map[pair]bool
}

// snapshot is a state that a cache may show.
type snapshot struct {
	nodes       map[string]*corev1.Node
	pods        map[pair]bool
	attachments map[string]*storagev1.VolumeAttachment
}

func newCluster(t *rapid.T, older bool) *cluster {
	c := &cluster{
		T: t, older: older,
		nodes: map[string]*corev1.Node{}, pods: map[pair]bool{}, attachments: map[string]*storagev1.VolumeAttachment{},
		attached: map[pair]bool{}, mounted: map[pair]bool{},
	}
	for i := range 3 {
		volume := disk(fmt.Sprintf("volume-%d", i))
		volume.SingleNode = i > 0
		c.volumes = append(c.volumes, volume)
	}
	for i := range 3 {
		node := managed()
		node.Name = fmt.Sprintf("node-%d", i)
		c.putNode(node)
	}
	c.history = c.history[len(c.history)-1:]
	return c
}

// wrote records the state after a write.
func (c *cluster) wrote() {
	c.history = append(c.history, snapshot{maps.Clone(c.nodes), maps.Clone(c.pods), maps.Clone(c.attachments)})
}

func (c *cluster) nextVersion() string {
	c.version++
	return fmt.Sprint(c.version)
}

func (c *cluster) putNode(node *corev1.Node) {
	node.ResourceVersion = c.nextVersion()
	c.nodes[node.Name] = node
	c.wrote()
}

func (c *cluster) putAttachment(object *storagev1.VolumeAttachment) {
	object.ResourceVersion = c.nextVersion()
	c.attachments[object.Name] = object
	c.wrote()
}

func (c *cluster) create(node string, volume attach.Volume) {
	if name := volume.AttachmentName(node); c.attachments[name] == nil {
		object := attachmentOn(node, volume, notAttached)
		object.UID = types.UID(c.nextVersion())
		// The API server's clock counts seconds: many are created at once.
		object.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(c.version/10) * time.Second))
		c.putAttachment(object)
	}
}

func (c *cluster) at(at pair) (node *corev1.Node, volume attach.Volume, own *storagev1.VolumeAttachment) {
	volume = c.volumes[at.volume]
	return c.nodes[at.node], volume, c.attachments[volume.AttachmentName(at.node)]
}

// kubelet does one thing that a kubelet may do with one volume.
func (c *cluster) kubelet(at pair) {
	node, volume, own := c.at(at)
	used := slices.Contains(node.Status.VolumesInUse, volume.Name)
	marked := slices.ContainsFunc(node.Status.VolumesAttached, func(a corev1.AttachedVolume) bool { return a.Name == volume.Name })
	desired := c.pods[at]
	switch {
	case desired && !used:
		node = node.DeepCopy()
		node.Status.VolumesInUse = append(node.Status.VolumesInUse, volume.Name)
		c.putNode(node)
	case desired && marked && !c.mounted[at] && c.usable(own):
		if !c.attached[at] {
			c.Fatalf("%s is in volumesAttached of %s, and is not attached", volume, at.node)
		}
		c.mounted[at] = true
	case !desired && c.mounted[at]:
		delete(c.mounted, at)
	case !desired && used:
		node = node.DeepCopy()
		node.Status.VolumesInUse = slices.DeleteFunc(node.Status.VolumesInUse, func(name corev1.UniqueVolumeName) bool { return name == volume.Name })
		c.putNode(node)
	}
}

// usable reports whether a node uses the device of an attachment, which it reads first: ours
// does not touch a volume that is being detached.
func (c *cluster) usable(own *storagev1.VolumeAttachment) bool {
	return own != nil && own.Status.Attached && (!c.older || own.DeletionTimestamp == nil)
}

// driver executes one attachment.
func (c *cluster) driver(at pair) {
	node, volume, own := c.at(at)
	switch {
	case own == nil:
	case own.DeletionTimestamp != nil:
		if c.older && attach.IsMarkedAttached(node, volume.Name) {
			return
		}
		if c.mounted[at] {
			c.Fatalf("%s is detached from %s, which has it mounted", volume, at.node)
		}
		delete(c.attached, at)
		delete(c.attachments, own.Name)
		c.wrote()
	case own.Status.Attached, c.older && volume.SingleNode && c.isYounger(at.volume, own):
	default:
		c.attached[at] = true
		c.checkAlone(at.volume)
		own = own.DeepCopy()
		own.Status.Attached = true
		c.putAttachment(own)
	}
}

func (c *cluster) isYounger(volume int, own *storagev1.VolumeAttachment) bool {
	return slices.ContainsFunc(c.otherNodes(volume, own.Spec.NodeName), func(other attach.OtherNode) bool {
		return attach.Older(other.Attachment, own) < 0
	})
}

// otherNodes are the other nodes that have attachments of a volume, read live.
func (c *cluster) otherNodes(volume int, but string) []attach.OtherNode {
	return otherNodesIn(c.attachments, c.volumes[volume], but)
}

func otherNodesIn(attachments map[string]*storagev1.VolumeAttachment, volume attach.Volume, but string) []attach.OtherNode {
	var others []attach.OtherNode
	for _, object := range attachments {
		if *object.Spec.Source.PersistentVolumeName == volume.String() && object.Spec.NodeName != but {
			others = append(others, attach.OtherNode{Node: object.Spec.NodeName, Attachment: object})
		}
	}
	return others
}

func (c *cluster) checkAlone(volume int) {
	var nodes []string
	for at := range c.attached {
		if at.volume == volume {
			nodes = append(nodes, at.node)
		}
	}
	if c.volumes[volume].SingleNode && len(nodes) > 1 {
		c.Fatalf("%s is on %v", c.volumes[volume], nodes)
	}
}

func (c *cluster) pairs() []pair {
	var pairs []pair
	for _, node := range slices.Sorted(maps.Keys(c.nodes)) {
		for volume := range c.volumes {
			pairs = append(pairs, pair{node, volume})
		}
	}
	return pairs
}
