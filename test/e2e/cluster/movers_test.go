package cluster_test

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// specs' label of pods that move.
const moverLabel = "mover"

// mover is a Deployment of one pod, which writes its name and is best on one node, but
// may be on another one where its volume can be.
type mover struct {
	*namespace
	claim      *corev1.PersistentVolumeClaim
	deployment *appsv1.Deployment
	// pods were its own, the last one last.
	pods []string
}

func (n *namespace) mover(class, node string) *mover {
	claim, one := n.claim(class, "16Mi"), int32(1)
	claim.Name = class
	pod := n.pod("", with(class), preferring(node))
	pod.Spec.Containers[0].Command[2] = "trap exit TERM; hostname >>/data/names && sync; sleep 1000000 & wait"
	labels := map[string]string{moverLabel: class}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: class},
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}
	return &mover{namespace: n, claim: claim, deployment: deployment}
}

// preferring has a pod scheduled to a node, or to another guest if that can't be.
func preferring(node string) func(*corev1.PodSpec) {
	in := func(nodes ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes},
		}}
	}
	return func(pod *corev1.PodSpec) {
		pod.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{in(node1, node2)}},
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: in(node)}},
		}}
	}
}

// start waits until it runs on a node.
func (m *mover) start(node string) error {
	return errors.Join(m.create(m.claim, m.deployment), m.arrives(node))
}

// arrives waits until a new pod runs on a node, and has found what all before it wrote.
func (m *mover) arrives(node string) error {
	return m.soon(func() error {
		pod, err := m.pod()
		if err != nil {
			return err
		}
		if err := errors.Join(m.runs(pod), isOn(node, pod)); err != nil {
			return err
		}
		if !slices.Contains(m.pods, pod.Name) {
			m.pods = append(m.pods, pod.Name)
		}
		want := ""
		for _, name := range m.pods {
			want += name + "\n"
		}
		return m.says(pod.Name, "cat /data/names", want[:len(want)-1])
	})
}

// pod is the only one of its own that isn't about to go, nor ended: a kubelet that hasn't
// heard yet that its node is back in service refuses a pod, and another one is made.
func (m *mover) pod() (*corev1.Pod, error) {
	all := &corev1.PodList{}
	if err := m.cluster.Client.List(m.ctx, all, client.InNamespace(m.name), client.MatchingLabels{moverLabel: m.claim.Name}); err != nil {
		return nil, err
	}
	stay := slices.DeleteFunc(all.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed })
	if len(stay) != 1 {
		return nil, fmt.Errorf("%s has %d pods", m.claim.Name, len(stay))
	}
	return &stay[0], nil
}

// waits reports whether it has a pod that no node can have.
func (m *mover) waits() error {
	pod, err := m.pod()
	if err != nil {
		return err
	}
	if slices.Contains(m.pods, pod.Name) || pod.Spec.NodeName != "" {
		return fmt.Errorf("pod %s is on %q", pod.Name, pod.Spec.NodeName)
	}
	return nil
}
