package owner

import (
	"testing"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

func FuzzNoDiskIsOursUnlessItsRecordNamesItAndUs(f *testing.F) {
	ours := `{"createdBy":"` + creator + `","id":"pvc-1","cluster":"c","backend":"cloud","claim":{"namespace":"a","name":"b","uid":"1"}}`
	f.Add("pvc-1", ours)
	f.Add("pvc-2", ours)
	f.Add("pvc-1-2", `{"createdBy":"`+creator+`","id":"pvc-1-2","cluster":"c","backend":"cloud","claim":{"uid":"1"}}`)
	f.Add("pvc-", `{"createdBy":"`+creator+`","id":"pvc-","cluster":"c","backend":"cloud","claim":{}}`)
	f.Add("boot", `{"createdBy":"another"}`)
	f.Add("boot", `[[[[`)
	f.Fuzz(func(t *testing.T, name, description string) {
		us := Owner{Cluster: "c", Backend: "cloud"}
		read, err := us.CheckDisk(&cloud.Disk{Disk: &compute.Disk{Name: name, Description: description}})
		fits := read.CreatedBy == creator && read.Cluster == "c" && read.Backend == "cloud" && read.ID == name &&
			backend.IsVolumeID(name, read.Claim.UID)
		if (err == nil) != fits {
			t.Errorf("disk %q with record %q: %v", name, description, err)
		}
	})
}
