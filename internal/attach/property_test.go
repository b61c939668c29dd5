package attach_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/stowage-dev/stowage/internal/attach"
)

// manager executes plans, as the reconciler of nodes does: from views that may be
// stale, in steps between which anything may happen.
type manager struct {
	*cluster
	// seen is how much of the history its cache shows, of each kind of object.
	seen struct{ nodes, pods, attachments int }
	// reserved are the volumes that nodes are about to get, and made the attachments
	// that it made itself.
	reserved map[corev1.UniqueVolumeName]string
	made     map[types.UID]bool
	// running are the rests of plans, by node.
	running map[string][]func() (goesOn bool)
}

// restart drops all memory, and begins with a cache that may be older than the last one.
func (m *manager) restart(t *rapid.T) {
	oldest := max(0, len(m.history)-20)
	m.seen.nodes, m.seen.pods, m.seen.attachments = oldest, oldest, oldest
	m.catchUp(t)
	m.reserved, m.made = map[corev1.UniqueVolumeName]string{}, map[types.UID]bool{}
	m.running = map[string][]func() bool{}
}

// catchUp updates its cache, not always fully.
func (m *manager) catchUp(t *rapid.T) {
	for _, seen := range []*int{&m.seen.nodes, &m.seen.pods, &m.seen.attachments} {
		*seen = rapid.IntRange(*seen, m.latest()).Draw(t, "cache")
	}
}

// seeAll updates its cache fully.
func (m *manager) seeAll() {
	m.seen.nodes, m.seen.pods, m.seen.attachments = m.latest(), m.latest(), m.latest()
}

func (m *manager) latest() int { return len(m.history) - 1 }

// begin makes a plan for a node that has none in progress.
func (m *manager) begin(name string) {
	if len(m.running[name]) > 0 {
		return
	}
	cache := snapshot{m.history[m.seen.nodes].nodes, m.history[m.seen.pods].pods, m.history[m.seen.attachments].attachments}
	view := attach.View{Name: name, Node: cache.nodes[name], OtherNodes: map[corev1.UniqueVolumeName][]attach.OtherNode{}, Now: now}
	for i, volume := range m.volumes {
		if object := cache.attachments[volume.AttachmentName(name)]; object != nil {
			view.Attachments = append(view.Attachments, attach.OfAttachment(object, diskObject(volume.String()), view.Node))
			m.release(volume, name)
		}
		if cache.pods[pair{name, i}] {
			view.Desired = append(view.Desired, volume)
			view.OtherNodes[volume.Name] = m.otherNodesOf(cache, volume, name)
		} else {
			m.release(volume, name)
		}
	}
	m.running[name] = m.execute(view, attach.Plan(view))
}

func (m *manager) release(volume attach.Volume, node string) {
	if m.reserved[volume.Name] == node {
		delete(m.reserved, volume.Name)
	}
}

func (m *manager) otherNodesOf(cache snapshot, volume attach.Volume, node string) []attach.OtherNode {
	if !volume.SingleNode {
		return nil
	}
	return otherNodesIn(cache.attachments, volume, node)
}

// execute returns a plan as steps between which others act.
func (m *manager) execute(view attach.View, plan []attach.Step) []func() bool {
	var steps []func() bool
	for _, step := range plan {
		if step.Action == attach.Create {
			steps = append(steps, m.creating(view.Name, step.Volume)...)
		}
	}
	for _, step := range plan {
		if step.Action == attach.MarkAttached && !m.made[step.Attachment.UID] {
			steps = append(steps, func() bool {
				live := m.attachments[step.Attachment.Name]
				return live != nil && live.UID == step.Attachment.UID && live.Status.Attached && live.DeletionTimestamp == nil
			})
		}
	}
	if attached, changed := attach.VolumesAttached(view.Node, plan); changed {
		steps = append(steps, func() bool { return m.mark(view.Node, attached) })
	}
	for _, step := range plan {
		if step.Action == attach.Delete {
			steps = append(steps, m.deleting(view.Name, step)...)
		}
	}
	return steps
}

func (m *manager) creating(node string, volume attach.Volume) []func() bool {
	may := true
	return []func() bool{
		func() bool {
			if !volume.SingleNode {
				return true
			}
			if by := m.reserved[volume.Name]; by != "" && by != node {
				may = false
				return true
			}
			m.reserved[volume.Name] = node
			return true
		},
		func() bool {
			at := slices.IndexFunc(m.volumes, func(other attach.Volume) bool { return other.Name == volume.Name })
			may = may && (!volume.SingleNode || len(m.otherNodes(at, node)) == 0)
			return true
		},
		func() bool {
			if may && m.attachments[volume.AttachmentName(node)] == nil {
				m.create(node, volume)
				m.made[m.attachments[volume.AttachmentName(node)].UID] = true
				m.seen.attachments = m.latest()
			}
			return true
		},
	}
}

// mark writes volumesAttached of a node, in the version that was read.
func (m *manager) mark(read *corev1.Node, attached []corev1.AttachedVolume) bool {
	if m.nodes[read.Name].ResourceVersion != read.ResourceVersion {
		return false
	}
	node := read.DeepCopy()
	node.Status.VolumesAttached = attached
	m.putNode(node)
	m.seen.nodes = m.latest()
	return true
}

func (m *manager) deleting(node string, step attach.Step) []func() bool {
	may := true
	return []func() bool{
		func() bool {
			may = step.Unmarked || attach.IsUnused(m.nodes[node], step.Volume.Name)
			return true
		},
		func() bool {
			if live := m.attachments[step.Attachment.Name]; may && live != nil && live.ResourceVersion == step.Attachment.ResourceVersion {
				live = live.DeepCopy()
				deleting(live)
				m.putAttachment(live)
				m.seen.attachments = m.latest()
			}
			return true
		},
	}
}

// advance does the next step for a node.
func (m *manager) advance(node string) {
	if rest := m.running[node]; len(rest) > 0 {
		m.running[node] = rest[1:]
		if !rest[0]() {
			m.running[node] = nil
		}
	}
}

// Drivers that execute every attachment are safe with one manager at a time,
// however often it is replaced, and however stale its cache is.
func TestNoVolumeIsDetachedWhileMountedOrAttachedTwiceByOneManager(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { simulate(t, newCluster(t, false), 1) })
}

// Our drivers are safe with two managers that both act, too.
func TestNoVolumeIsDetachedWhileMountedOrAttachedTwiceByTwoManagers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { simulate(t, newCluster(t, true), 2) })
}

func simulate(t *rapid.T, c *cluster, count int) {
	var managers []*manager
	for range count {
		m := &manager{cluster: c}
		m.restart(t)
		managers = append(managers, m)
	}
	at := func() pair { return rapid.SampledFrom(c.pairs()).Draw(t, "pair") }
	one := func() *manager { return rapid.SampledFrom(managers).Draw(t, "manager") }
	// work proceeds normally, so that there is something to lose.
	work := func() {
		for range 4 {
			settle(c, managers[:1])
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"start":   func(*rapid.T) { c.pods[at()] = true; c.wrote() },
		"end":     func(*rapid.T) { delete(c.pods, at()); c.wrote() },
		"use":     func(*rapid.T) { c.pods[at()] = true; c.wrote(); work() },
		"work":    func(*rapid.T) { work() },
		"kubelet": func(*rapid.T) { c.kubelet(at()) },
		"driver":  func(*rapid.T) { c.driver(at()) },
		"see":     func(t *rapid.T) { one().catchUp(t) },
		"plan":    func(*rapid.T) { one().begin(at().node) },
		"advance": func(*rapid.T) { one().advance(at().node) },
		"hurry":   func(*rapid.T) { hurry(one(), at().node) },
		"crash":   func(t *rapid.T) { one().restart(t) },
	})
	for range 30 {
		settle(c, managers)
	}
	checkAtRest(t, c)
}

// hurry executes a whole plan.
func hurry(m *manager, node string) {
	m.begin(node)
	for len(m.running[node]) > 0 {
		m.advance(node)
	}
}

// settle has all managers, kubelets and drivers act on the current state.
func settle(c *cluster, managers []*manager) {
	for _, at := range c.pairs() {
		for _, m := range managers {
			m.seeAll()
			hurry(m, at.node)
		}
		c.kubelet(at)
		c.driver(at)
	}
}

// checkAtRest expects each volume to be where pods need it, and nowhere else: a volume
// for one node on one of those nodes.
func checkAtRest(t *rapid.T, c *cluster) {
	for i, volume := range c.volumes {
		desired, mounted := 0, 0
		for _, at := range c.pairs() {
			if at.volume != i {
				continue
			}
			if c.pods[at] {
				desired++
			} else if c.attached[at] || c.attachmentAt(at) != nil {
				t.Fatalf("%s is still on %s, where no pod needs it", volume, at.node)
			}
			if c.mounted[at] {
				mounted++
			}
		}
		if volume.SingleNode {
			desired = min(desired, 1)
		}
		if mounted != desired {
			t.Fatalf("%s is mounted on %d nodes, not %d", volume, mounted, desired)
		}
	}
}

func (c *cluster) attachmentAt(at pair) *storagev1.VolumeAttachment {
	_, _, own := c.at(at)
	return own
}
