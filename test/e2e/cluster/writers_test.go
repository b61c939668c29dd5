package cluster_test

import (
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// writeOn writes line after line to a volume, each stored before the next, and ends as soon
// as one can't be.
const writeOn = `trap exit TERM
n=0
while n=$((n + 1)); do
  echo $n >>/data/lines && sync -d /data/lines || exit 1
  sleep 1
done`

// stillWrites waits for two more lines, and fails where one is missing.
const stillWrites = `before=$(wc -l </data/lines)
until test $(wc -l </data/lines) -gt $((before + 1)); do sleep 0.5; done
head -n $before /data/lines | awk 'NR != $1 { exit 1 }' && echo whole`

// writers are pods that write all the time, one to a volume of each class, on one node.
// Pods and claims bear the name of all and the class.
type writers struct {
	*namespace
	pods   []*corev1.Pod
	claims []*corev1.PersistentVolumeClaim
	were   map[string]types.UID
}

func (n *namespace) writers(called, node string, classes ...string) *writers {
	w := &writers{namespace: n, were: map[string]types.UID{}}
	for _, class := range classes {
		name := called + "-" + class
		claim := n.claim(class, "16Mi")
		claim.Name = name
		pod := n.pod(name, on(node), with(name))
		pod.Spec.Containers[0].Command[2] = writeOn
		// One that ends has failed, and stays so.
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.pods, w.claims = append(w.pods, pod), append(w.claims, claim)
	}
	return w
}

// start creates all, and waits until they write.
func (w *writers) start() error {
	if err := w.createAll(); err != nil {
		return err
	}
	return w.begun()
}

func (w *writers) createAll() error {
	for i, pod := range w.pods {
		if err := w.create(w.claims[i], pod); err != nil {
			return err
		}
		w.were[pod.Name] = pod.UID
	}
	return nil
}

// begun waits until they write.
func (w *writers) begun() error {
	runs := func(pod *corev1.Pod) error {
		return w.soon(func() error { return w.runs(pod) })
	}
	if err := atOnce(w.pods, runs); err != nil {
		return err
	}
	return w.soon(w.goOn)
}

// goOn reports whether all write on, are the same pods, and nothing that they wrote is
// missing.
func (w *writers) goOn() error {
	return atOnce(w.pods, func(pod *corev1.Pod) error {
		if err := w.runs(pod); err != nil {
			return err
		}
		if pod.UID != w.were[pod.Name] {
			return fmt.Errorf("pod %s isn't the one that it was", pod.Name)
		}
		return w.says(pod.Name, stillWrites, "whole")
	})
}

// end removes the pods, and waits until their volumes are nowhere on the node.
func (w *writers) end() error {
	node := w.pods[0].Spec.NodeName
	if err := atOnce(w.pods, func(pod *corev1.Pod) error { return w.remove(pod) }); err != nil {
		return err
	}
	return atOnce(w.claims, func(claim *corev1.PersistentVolumeClaim) error {
		return w.soon(func() error { return w.isNowhereOn(node, claim) })
	})
}

// atOnce does something with each at once.
func atOnce[T any](each []T, do func(T) error) error {
	problems := make([]error, len(each))
	var all sync.WaitGroup
	for i, one := range each {
		all.Go(func() { problems[i] = do(one) })
	}
	all.Wait()
	return errors.Join(problems...)
}
