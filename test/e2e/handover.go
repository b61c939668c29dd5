package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/apiserver"
	"github.com/stowage-dev/stowage/test/controlplane"
	"github.com/stowage-dev/stowage/test/witness"
)

// What is installed beside kube-controller-manager, and instead of its volume
// controllers.
const (
	besideIt    = "default"
	insteadOfIt = "standalone"
)

// handedOver: whoever decides, the other one can take over while pods run, and nobody who
// uses a volume notices.
func handedOver(s *scene) {
	if s.bed.overlay != besideIt {
		return // it began there, and came through here
	}
	watched := s.watched(everyKind...)
	s.handTo(insteadOfIt)
	s.Do("the pods write on", watched.goOn)
	s.Do("new pods, claims and disks come and go", func() error { return s.comesAndGoes("under-stowage") })
	s.handTo(besideIt)
	s.Do("again the pods write on", watched.goOn)
	s.Do("again new ones come and go", func() error { return s.comesAndGoes("under-kubernetes") })
	watched.unchanged()
	s.Do("the pods go", watched.end)
}

// handTo has Stowage installed otherwise, in the order that design.md gives: whatever
// gives way goes first.
func (s *scene) handTo(overlay string) {
	if overlay == insteadOfIt {
		s.Do("kube-controller-manager's volume controllers are switched off", func() error {
			controllers, err := controlplane.StandaloneControllers()
			if err != nil {
				return err
			}
			return s.bed.Plane.SwitchControllers(s.Ctx, controllers)
		})
	}
	s.Do("config/"+overlay+" is applied", func() error {
		s.bed.overlay = overlay
		return s.bed.apply()
	})
	s.Soon("the new managers are Ready, and the old ones gone", func() error {
		return errors.Join(s.bed.managersAreReady(), s.bed.onlyManagersOf(overlay), s.bed.agentsAreReady())
	})
	if overlay == besideIt {
		s.Do("what only config/standalone has goes", s.bed.forgetStandalone)
		s.Do("kube-controller-manager's volume controllers are switched on", func() error {
			return s.bed.Plane.SwitchControllers(s.Ctx, controlplane.AllControllers)
		})
	}
}

// onlyManagersOf says whether no manager is left that was started otherwise.
func (b *bed) onlyManagersOf(overlay string) error {
	scope := map[string]string{besideIt: "--scope=classes", insteadOfIt: "--scope=cluster"}[overlay]
	all := &corev1.PodList{}
	err := b.Client.List(b.story.Ctx, all, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/component": "manager"})
	if err != nil {
		return err
	}
	for _, pod := range all.Items {
		if argument := pod.Spec.Containers[0].Args[0]; argument != scope {
			return fmt.Errorf("manager %s is there, with %s", pod.Name, argument)
		}
	}
	return nil
}

// forgetStandalone removes what applying config/default leaves of config/standalone.
func (b *bed) forgetStandalone() error {
	folder := filepath.Join(apiserver.Repository(), "config", "rbac", "pod-source")
	all, err := run(b.story.Ctx, "", filepath.Join(apiserver.Repository(), "bin", "kustomize"), "build", folder)
	if err == nil {
		_, err = b.kubectl(b.story.Ctx, all, "delete", "--filename=-")
	}
	return err
}

// watched are writers on both guests, with a witness who looks at all claims, volumes,
// attachments and mounts.
type watched struct {
	*scene
	writers []*writers
	witness *witness.Witness
	mounts  func() error
}

// watched begins it all.
func (s *scene) watched(classes ...string) *watched {
	w := &watched{scene: s, writers: []*writers{s.writers("one", node1, classes...), s.writers("two", node2, classes...)}}
	s.Do("pods on both guests write to volumes of each kind", func() error {
		return atOnce(w.writers, (*writers).start)
	})
	s.Do("a witness looks at claims, volumes, attachments and mounts", w.look)
	return w
}

func (w *watched) look() error {
	watching, err := client.NewWithWatch(w.bed.Plane.Config, client.Options{Scheme: w.bed.Client.Scheme()})
	if err != nil {
		return err
	}
	if w.witness, err = witness.New(context.WithoutCancel(w.Ctx), watching, w.isTheirs); err != nil {
		return err
	}
	w.mounts, err = w.watchMounts(w.bed.Nodes, w.writers...)
	return err
}

// isTheirs says whether something is to stay as it is: claims of other pods aren't.
func (w *watched) isTheirs(object client.Object) bool {
	claim, is := object.(*corev1.PersistentVolumeClaim)
	if !is {
		return true
	}
	for _, one := range append(w.writers[0].claims, w.writers[1].claims...) {
		if one.UID == claim.UID {
			return true
		}
	}
	return false
}

func (w *watched) goOn() error { return atOnce(w.writers, (*writers).goOn) }

func (w *watched) end() error { return atOnce(w.writers, (*writers).end) }

// unchanged ends the looking.
func (w *watched) unchanged() {
	w.Do("no claim, volume or attachment changed", func() error {
		defer w.witness.Stop()
		return w.witness.Check()
	})
	w.Do("nor any mount", func() error { return w.mounts() })
}
