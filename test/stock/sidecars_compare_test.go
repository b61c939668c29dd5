package stock_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protojson"
)

// unlike are the fields in which objects that Stowage made differ from those of the sidecars.
// docs/start/csi.md lists them.
var unlike = []any{
	// Stowage finds its volumes by it.
	`PersistentVolume metadata.labels.stowage.dev/backend`,
	// Each provisioner has its own, and each attach passes it on.
	`PersistentVolume spec.csi.volumeAttributes.storage.kubernetes.io/csiProvisionerIdentity`,
	`ControllerPublishVolume volumeContext.storage.kubernetes.io/csiProvisionerIdentity`,
	// As on each volume that a controller ties to its claim.
	`PersistentVolume metadata.annotations.pv.kubernetes.io/bound-by-controller`,
	// The record of an attachment, from before the driver is called.
	`VolumeAttachment metadata.annotations.stowage.dev/attachment`,
}

// expectAlike compares what was made for two claims of one class, and the requests that the driver got. What is
// listed must differ, too.
func expectAlike(sidecars, stowage *user) {
	GinkgoHelper()
	theirs, ours := sidecars.fields("sidecars"), stowage.fields("stowage")
	var differences []any
	for _, key := range slices.Sorted(maps.Keys(merged(theirs, ours))) {
		if theirs[key] != ours[key] {
			AddReportEntry("unlike", fmt.Sprintf("%s: %s by the sidecars, %s by Stowage", key, theirs[key], ours[key]), ReportEntryVisibilityFailureOrVerbose)
			differences = append(differences, key)
		}
	}
	Expect(differences).To(ConsistOf(unlike))
}

func merged(one, other map[string]string) map[string]string {
	both := maps.Clone(one)
	maps.Copy(both, other)
	return both
}

// fields are those of the objects of a claim, and of the driver's requests for them, by their paths. Names and
// ids that no two claims share have the same words in their place.
func (u *user) fields(by string) map[string]string {
	GinkgoHelper()
	same := strings.NewReplacer(
		string(u.claim.UID), "CLAIM", u.attachment.Name, "ATTACHMENT", string(u.attachment.UID), "ATTACHMENT",
		string(u.pv.UID), "VOLUME", `"`+u.claim.Name+`"`, `"NAME"`, `"`+u.handle()+`"`, `"HANDLE"`)
	all := map[string]string{}
	for _, object := range u.attached {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1.")
		object.SetManagedFields(nil)
		object.SetResourceVersion("")
		flatten(all, kind, object, same)
	}
	for method, volume := range map[string]string{"CreateVolume": u.pv.Name, "ControllerPublishVolume": u.handle()} {
		text, err := protojson.Marshal(u.driver.request(by, method, volume))
		Expect(err).NotTo(HaveOccurred())
		flatten(all, method, json.RawMessage(text), same)
	}
	return all
}

// flatten adds the fields of a value to others.
func flatten(all map[string]string, kind string, value any, same *strings.Replacer) {
	GinkgoHelper()
	text, err := json.Marshal(value)
	Expect(err).NotTo(HaveOccurred())
	var read any
	Expect(json.Unmarshal([]byte(same.Replace(string(text))), &read)).To(Succeed())
	var add func(path string, value any)
	add = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, of := range value {
				add(path+"."+key, of)
			}
		case []any:
			for number, of := range value {
				add(fmt.Sprintf("%s.%d", path, number), of)
			}
		default:
			if key := kind + " " + strings.TrimPrefix(path, "."); !isOfAnyObject(key) {
				all[key] = fmt.Sprintf("%q", value)
			}
		}
	}
	add("", read)
}

// isOfAnyObject reports whether a field has the time or the version of an object.
func isOfAnyObject(key string) bool {
	for _, suffix := range []string{"creationTimestamp", "resourceVersion", "lastTransitionTime", "lastPhaseTransitionTime", " metadata.uid"} {
		if strings.HasSuffix(key, suffix) {
			return true
		}
	}
	return false
}
