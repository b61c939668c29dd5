package binder_test

import (
	"testing"

	"k8s.io/component-helpers/storage/volume"

	"github.com/stowage-dev/stowage/internal/binder"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestBindingIsDoneOnceAndUndoneToWhatAPersonWrote(t *testing.T) {
	claim := Claim(ClaimUID("1"))

	chosen := Volume("chosen-by-the-controller")
	if !binder.BindVolume(chosen, claim) || !binder.TiedTo(chosen, claim) {
		t.Fatal("the volume is not tied to the claim")
	}
	if binder.BindVolume(chosen, claim) {
		t.Error("binding it again changed something")
	}
	if !binder.UnbindVolume(chosen) || chosen.Spec.ClaimRef != nil {
		t.Error("what the controller chose was not taken back")
	}
	if chosen.Annotations[volume.AnnBoundByController] != "" {
		t.Error("the annotation was left behind")
	}

	reserved := Volume("reserved-by-a-person", ReservedTo("data"))
	binder.BindVolume(reserved, claim)
	if reserved.Annotations[volume.AnnBoundByController] != "" {
		t.Error("a person's choice is marked as the controller's")
	}
	binder.UnbindVolume(reserved)
	if ref := reserved.Spec.ClaimRef; ref == nil || ref.Name != "data" || ref.UID != "" {
		t.Errorf("a person's reservation became %+v", ref)
	}
}

func TestAClaimIsCompletedByBindingIt(t *testing.T) {
	claim := Claim()
	if binder.Completed(claim) {
		t.Fatal("a new claim is completed")
	}
	if !binder.BindClaim(claim, Volume("v")) || !binder.Completed(claim) || claim.Spec.VolumeName != "v" {
		t.Error("the claim is not bound to the volume")
	}
	if binder.BindClaim(claim, Volume("v")) {
		t.Error("binding it again changed something")
	}
}

func TestAClaimThatNamedItsVolumeIsNotMarkedAsBoundByTheController(t *testing.T) {
	claim := Claim(AskingFor("v"))
	binder.BindClaim(claim, Volume("v"))
	if claim.Annotations[volume.AnnBoundByController] != "" {
		t.Error("a person's choice is marked as the controller's")
	}
}
