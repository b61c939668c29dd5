package gce

import (
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

func TestAKeyThatCannotBeUsedIsReportedAndOneThatCanAgainIsUsedOnce(t *testing.T) {
	for state, says := range map[string][]string{
		"DENIED":    {"grant the Compute Engine service agent of project demo the role cloudkms.cryptoKeyEncrypterDecrypter", oneKey},
		"DISABLED":  {"enable its version", oneKey, "current state is: DISABLED"},
		"DESTROYED": {"enable its version", oneKey, "current state is: DESTROYED"},
	} {
		for _, name := range []string{"Provision", "Restore", "Clone", "CreateSnapshot", "CreateImage", "Attach"} {
			t.Run(name+" "+state, func(t *testing.T) {
				w := newWorld(t)
				w.spec.EncryptionKey = oneKey
				calls[name].prepare(w, w.open())
				before := w.begun(name)
				w.mock.SetKey(oneKey, state)
				for range 2 {
					w.mustBe(calls[name].call(w, w.open()), backend.Unavailable, says...)
				}
				if begun := w.begun(name) - before; begun != 0 {
					t.Errorf("%d operations began", begun)
				}

				w.mock.SetKey(oneKey, "ENABLED")
				w.must(w.untilFinal(func() error { return calls[name].call(w, w.openAs(w.newKind(thisCluster), "cloud")) }))
				if begun := w.begun(name) - before; begun != 1 {
					t.Errorf("there were %d operations", begun)
				}
				w.checkOutcome(name, name)
			})
		}
	}
}

func TestAKeyThatAnOperationCannotUseIsReported(t *testing.T) {
	w := newWorld(t)
	w.inject(gcemock.Fault{Method: "disks.insert", Count: 1, Operation: "KMS_PERMISSION_DENIED", Message: "no luck"})
	w.mustBe(calls["Provision"].call(w, w.open()), backend.Unavailable, "Cloud KMS refuses the encryption key", "no luck")
	w.must(w.untilFinal(func() error { return calls["Provision"].call(w, w.open()) }))
}

func TestWhatNeedsNoKeyGoesOnWithoutIt(t *testing.T) {
	for _, name := range []string{"Detach", "Retain", "DeleteSnapshot", "DeleteImage", "Delete"} {
		w := newWorld(t)
		w.spec.EncryptionKey = oneKey
		calls[name].prepare(w, w.open())
		w.mock.SetKey(oneKey, "DESTROYED")
		w.must(w.untilFinal(func() error { return calls[name].call(w, w.open()) }))
		w.checkOutcome(name, name)
	}
}

func TestWhatIsNotWantedAnyMoreDoesNotWaitForItsKey(t *testing.T) {
	w := newWorld(t)
	w.spec.EncryptionKey = oneKey
	on := w.open()
	withVolume(w, on)
	w.mock.SetKey(oneKey, "DISABLED")

	unwanted := backendtest.Request("2")
	unwanted.Unwanted = true
	_, err := w.provision(on, unwanted)
	w.mustBe(err, backend.Invalid, "disk pvc-2 was never made")
	for _, request := range []backend.SnapshotRequest{ofA(), asImage()} {
		request.Unwanted = true
		_, err := on.CreateSnapshot(t.Context(), request)
		w.mustBe(err, backend.NotFound, "was never made")
	}
}
