package demo_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// mistakes: bad input gets an answer where a user looks, and nothing is made.
func mistakes(s *scenario) {
	s.badBackends()
	s.badClass("typo", `{backend: nowhere}`, "nowhere")
	s.badClass("colourful", `{backend: fast, colour: blue}`, "colour")
	s.tooMuch()
	s.noSuchNode()
	s.check("nothing was made for any of them", "pv", s.nothingIsLeft("archive"))
}

func (s *scenario) badBackends() {
	s.say("A backend of two kinds:")
	output, err := s.try("apply", "-f", s.manifest("two_kinds.yaml", nil))
	s.check("the API server refuses it and says why", "storagebackend", func() error {
		if err == nil {
			return errors.New("it was accepted")
		}
		return hasParts(output, []string{"exactly one"})
	})
	s.say("A backend outside the folder that is set apart for local volumes:")
	s.apply("outside.yaml", nil)
	s.check("it is not Ready, because of its path", "storagebackend/elsewhere",
		s.backendIs("elsewhere", metav1.ConditionFalse, "is not below "+s.cluster.Folder.Disks()))
	s.kubectl("delete", "storagebackend/elsewhere", "--wait=false")
	s.check("it can be deleted", "storagebackend/elsewhere", s.isGone("elsewhere", &stowagev1alpha1.StorageBackend{}))
}

func (s *scenario) badClass(name, parameters, mistake string) {
	var said string
	s.say("A class with the parameters %s:", parameters)
	s.apply("class.yaml", values{"NAME": name, "PARAMETERS": parameters})
	s.apply("claim.yaml", values{"NAME": name, "CLASS": name, "SIZE": "1Gi"})
	s.check("the claim says what is wrong", "pvc/"+name, s.claimSays(name, &said, mistake))
	s.quote(said)
	s.check("and so does an event", "pvc/"+name, s.eventTells(name, "ProvisioningFailed"))
	s.deleteClaim(name)
}

func (s *scenario) tooMuch() {
	var said string
	s.say("A claim for more than the disk has:")
	s.apply("claim.yaml", values{"NAME": "huge", "CLASS": "fast", "SIZE": "500Ti"})
	s.apply("pod.yaml", values{"NAME": "huge", "CLAIM": "huge"})
	s.check("the claim says that there is no room", "pvc/huge", s.claimSays("huge", &said, "no room on the disk"))
	s.quote(said)
	s.kubectl("delete", "pod/huge", "--wait=false")
	s.deleteClaim("huge")
}

func (s *scenario) noSuchNode() {
	var said string
	s.say("A pod on a node that does not exist:")
	s.apply("claim.yaml", values{"NAME": "lost", "CLASS": "fast", "SIZE": "1Gi"})
	s.apply("pod.yaml", values{"NAME": "lost", "CLAIM": "lost", "NODE": "atlantis"})
	s.check("the claim says so", "pvc/lost", s.claimSays("lost", &said, "atlantis"))
	s.quote(said)
	// No agent finishes the deletion of a pod that no node has.
	s.kubectl("delete", "pod/lost", "--wait=false", "--force", "--grace-period=0")
	s.deleteClaim("lost")
}

func (s *scenario) deleteClaim(name string) {
	s.kubectl("delete", "pvc/"+name, "--wait=false")
	s.check("it can be deleted", "pvc/"+name, s.isGone(name, &corev1.PersistentVolumeClaim{}))
}

func (s *scenario) quote(said string) {
	s.say("    %s", said)
}

// nothingIsLeft holds if there is no volume but those named.
func (s *scenario) nothingIsLeft(but ...string) condition {
	return func() error {
		volumes, records := &corev1.PersistentVolumeList{}, &stowagev1alpha1.NodeVolumeList{}
		if err := errors.Join(s.cluster.Client.List(s.ctx, volumes), s.cluster.Client.List(s.ctx, records)); err != nil {
			return err
		}
		if len(volumes.Items) != len(but) || len(records.Items) != 0 {
			return fmt.Errorf("%d volumes and %d NodeVolumes are there", len(volumes.Items), len(records.Items))
		}
		return s.emptyDisk()
	}
}
