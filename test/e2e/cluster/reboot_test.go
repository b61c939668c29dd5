package cluster_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// user is a pod on one node that writes to a volume once, and can be asked for what it
// wrote.
type user struct {
	*namespace
	pod         *corev1.Pod
	claim       *corev1.PersistentVolumeClaim
	write, read string
}

// rebooted: a node that lost its power for a moment has its pods again, with what they
// wrote, without an administrator.
func rebooted(n *namespace) {
	users := n.usersOn(node1)
	scenario.Step("pods on node1 write to volumes of each kind, and to devices", func() error { return atOnce(users, (*user).start) })
	scenario.Step("node1 is killed", func() error {
		n.cluster.Guest(node1).Crash()
		return nil
	})
	n.boots(node1)
	scenario.Step("the same pods run again", func() error {
		return atOnce(users, func(one *user) error { return n.soon(one.runsAgain) })
	})
	scenario.Step("each finds what it wrote", func() error { return atOnce(users, (*user).finds) })
	scenario.Step("the disks are attached to node1 alone", func() error {
		return atOnce(users, func(one *user) error {
			if *one.claim.Spec.StorageClassName != disks {
				return nil
			}
			return n.isAttachedTo(one.claim, node1)
		})
	})
	scenario.Step("all go, and their volumes are nowhere on node1", func() error { return atOnce(users, (*user).end) })
}

// usersOn are one of each kind.
func (n *namespace) usersOn(node string) []*user {
	var all []*user
	for _, class := range everyKind {
		all = append(all, &user{
			namespace: n, claim: n.claim(class, "16Mi", fixture.ClaimNamed(class)), pod: n.pod(class, on(node), with(class)),
			write: "echo hello >/data/greeting && sync", read: "cat /data/greeting",
		})
	}
	for _, class := range []string{images, disks} {
		name := class + "-as-device"
		all = append(all, &user{
			namespace: n, claim: n.claim(class, "16Mi", fixture.ClaimNamed(name), fixture.AskingBlock()), pod: n.pod(name, on(node), withDevice(name)),
			write: writeToDevice, read: readFromDevice,
		})
	}
	return all
}

func (u *user) start() error {
	return errors.Join(u.launch(u.claim, u.pod), u.does(u.pod.Name, u.write))
}

// runsAgain reports whether the pod runs, and did so before: what a node that is away said
// last stays to be read.
func (u *user) runsAgain() error {
	if err := u.runs(u.pod); err != nil {
		return err
	}
	if u.pod.Status.ContainerStatuses[0].RestartCount == 0 {
		return fmt.Errorf("pod %s still runs for the first time", u.pod.Name)
	}
	return nil
}

func (u *user) finds() error { return u.says(u.pod.Name, u.read, "hello") }

func (u *user) end() error {
	return errors.Join(u.remove(u.pod), u.soon(func() error { return u.isNowhereOn(u.pod.Spec.NodeName, u.claim) }))
}
