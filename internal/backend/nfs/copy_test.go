package nfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
	"github.com/stowage-dev/stowage/internal/backend/nfs/nfstest"
)

// copied is the directory of the volume of claim 2, which is a copy of that of claim 1.
const copied = "default-claim-2-2"

func copyOf(uid string) backend.Request {
	request := backendtest.Request("2")
	request.Source = &backend.Source{ID: backendtest.Request(uid).ID, Claim: backendtest.Request(uid).Claim}
	return request
}

func TestACopyHasWhatItsVolumeHadAndIsItsOwn(t *testing.T) {
	w, opened := withFile(t)
	w.put(t, data+"/below/this", "there")

	mustProvision(t, opened, copyOf("1"))

	w.put(t, data+"/state", "after")
	w.mustHaveContent(t, copied+"/state", "before")
	w.mustHaveContent(t, copied+"/below/this", "there")
	must(t, opened.Delete(t.Context(), backendtest.Request("1").ID))
	w.mustHaveContent(t, copied+"/state", "before")
	w.mustLack(t, ".stowage/restoring/"+backendtest.Request("2").ID)
}

func TestACopyIsMadeForTheNamespaceThatMayHaveIt(t *testing.T) {
	w, opened := withFile(t)
	wanted := copyOf("1")
	wanted.Source.Namespace, wanted.Claim.Namespace = wanted.Claim.Namespace, "other"

	mustProvision(t, opened, wanted)

	w.mustHaveContent(t, "other-claim-2-2/state", "before")
}

func TestNoCopyIsMadeOfAVolumeThatGoesInTheMiddle(t *testing.T) {
	w, opened := withFile(t)
	w.put(t, data+"/other", "file")
	_, err := inSlices(opened).Provision(t.Context(), copyOf("1"))
	expectUnfinished(t, err)
	must(t, opened.Delete(t.Context(), backendtest.Request("1").ID))

	_, err = opened.Provision(t.Context(), copyOf("1"))

	if !errors.Is(err, backend.Invalid) {
		t.Errorf("it got the answer %v", err)
	}
	w.mustLack(t, copied)
	must(t, opened.Delete(t.Context(), backendtest.Request("2").ID))
	w.mustLack(t, ".stowage/restoring/"+backendtest.Request("2").ID)
}

func TestNoCopyIsCompleteOfWhatIsRemovedWhileItIsCopied(t *testing.T) {
	for name, test := range map[string]struct {
		record  string
		request backend.Request
	}{
		"a volume":   {recordPath(backendtest.Request("1").ID), copyOf("1")},
		"a snapshot": {".stowage/snapshots/snapshot-a.json", restoredFrom("snapshot-a")},
	} {
		t.Run(name, func(t *testing.T) {
			w, opened := withFile(t)
			mustSnapshot(t, opened)
			path := filepath.Join(w.folder, test.record)
			record, err := os.ReadFile(path)
			must(t, err)
			writes := 0
			w.proxy.Plan(func(call nfstest.Call) nfstest.Fault {
				if call.Procedure == procWrite {
					writes++
				}
				if call.Procedure == procWrite && writes == 2 { // the first one is the record's
					_ = os.Remove(path)
				}
				return nfstest.None
			})

			_, err = opened.Provision(t.Context(), test.request)

			if !errors.Is(err, backend.Invalid) {
				t.Errorf("it got the answer %v", err)
			}
			w.mustLack(t, copied)
			w.proxy.Plan(nil)
			must(t, os.WriteFile(path, record, 0o600))
			mustProvision(t, opened, test.request)
			w.mustHaveContent(t, copied+"/state", "before")
		})
	}
}
