package demo_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

// crowd is how many claims are under way at the crash.
const crowd = 12

// crash: manager and node agent are killed in the middle of everything.
func crash(s *scenario) {
	var before, after mount.Point

	s.say("A pod is running and has written something:")
	s.apply("claim.yaml", values{"NAME": "steady", "CLASS": "fast", "SIZE": "16Mi"})
	s.apply("pod.yaml", values{"NAME": "steady", "CLAIM": "steady"})
	volume := "pvc-" + string(s.claim("steady").UID)
	s.check("its volume is mounted", "pod/steady", s.mounted("steady", volume, &before))
	s.write(before.Path)

	s.say("%d more claims and pods are being made. As soon as the first claim is Bound, both are killed:", crowd)
	made := s.background("apply", "-f", s.crowdManifest())
	s.check("the first claim is Bound", "pvc", s.anyBound())
	s.killBoth()
	s.do(made)
	s.say("%s.", s.progress())
	s.check("the running pod still has its volume", "pod/steady", s.greets(before.Path))
	s.startBoth()
	s.check("every claim is Bound, every pod has its own volume", "pvc", s.allMounted())
	s.check("each claim got one volume, and there are no others", "pv", s.onePerClaim(crowd+1))
	s.check("the running pod's volume was never taken away", "pod/steady", func() error {
		if err := s.mounted("steady", volume, &after)(); err != nil {
			return err
		}
		if before.ID != after.ID {
			return errors.New("it was mounted again")
		}
		return nil
	})

	s.say("Everything is deleted, and both are killed again as soon as the first claim is gone:")
	deleted := s.background("delete", "pod,pvc", "--all", "--wait=false", "--namespace", "default")
	s.check("the first claim is gone", "pvc", s.anyGone())
	s.killBoth()
	s.do(deleted)
	s.say("%s.", s.progress())
	s.startBoth()
	s.check("all pods and claims are gone", "pvc", s.allGone())
	s.check("all volumes but the retained one are gone, from the API and from the disk", "pv", s.nothingIsLeft("archive"))
	s.check("nothing is mounted", "pod", nothingMountedBelow(s.cluster.Folder.AgentRoot(cluster.NodeName)))
}

func (s *scenario) killBoth() {
	s.killed = true
	s.do(func() error {
		fmt.Printf("  $ kill -9 %d %d  # manager, node agent\n", s.cluster.Manager.PID(), s.cluster.Agent.PID())
		return errors.Join(s.cluster.Manager.Kill(), s.cluster.Agent.Kill())
	})
}

func (s *scenario) startBoth() {
	s.say("Both are started again. The manager waits until its predecessor's lease has run out.")
	s.do(func() error {
		return errors.Join(s.cluster.Manager.Start(), s.cluster.Agent.Start())
	})
	s.killed = false
	s.do(func() error {
		return errors.Join(s.cluster.Manager.AwaitReady(s.ctx), s.cluster.Agent.AwaitReady(s.ctx))
	})
}

func (s *scenario) claims() ([]corev1.PersistentVolumeClaim, error) {
	list := &corev1.PersistentVolumeClaimList{}
	err := s.cluster.Client.List(s.ctx, list)
	return list.Items, err
}

func (s *scenario) countBound() (bound, all int, err error) {
	claims, err := s.claims()
	for _, claim := range claims {
		if claim.Status.Phase == corev1.ClaimBound {
			bound++
		}
	}
	return bound, len(claims), err
}

// progress is how far things had come.
func (s *scenario) progress() string {
	bound, all, err := s.countBound()
	if err != nil {
		return err.Error()
	}
	table, err := mount.Kernel{}.Table()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("That left %d of %d claims Bound and %d volumes mounted", bound, all, len(table.Below(s.cluster.Folder.AgentRoot(cluster.NodeName))))
}

// anyBound holds once another claim than the steady one is Bound.
func (s *scenario) anyBound() condition {
	return func() error {
		bound, _, err := s.countBound()
		if err == nil && bound < 2 {
			err = errors.New("none is")
		}
		return err
	}
}

// anyGone holds once a claim of the crowd, or the steady one, is gone.
func (s *scenario) anyGone() condition {
	return func() error {
		claims, err := s.claims()
		if err == nil && len(claims) > crowd {
			err = errors.New("all are there")
		}
		return err
	}
}
