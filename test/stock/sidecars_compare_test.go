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
	Expect(differences(sidecars.fields("sidecars"), stowage.fields("stowage"))).To(ConsistOf(unlike))
}

// expectAlikeRequests compares the requests of a method for two claims of one class.
func expectAlikeRequests(method string, sidecars, stowage *user, unlike ...any) {
	GinkgoHelper()
	theirs, ours := map[string]string{}, map[string]string{}
	sidecars.addRequest(theirs, "sidecars", method)
	stowage.addRequest(ours, "stowage", method)
	Expect(ours).NotTo(BeEmpty())
	Expect(differences(theirs, ours)).To(ConsistOf(unlike...))
}

// differences are the fields that differ.
func differences(theirs, ours map[string]string) (found []string) {
	all := maps.Clone(theirs)
	maps.Copy(all, ours)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if theirs[key] != ours[key] {
			AddReportEntry("unlike", fmt.Sprintf("%s: %s by the sidecars, %s by Stowage", key, theirs[key], ours[key]), ReportEntryVisibilityFailureOrVerbose)
			found = append(found, key)
		}
	}
	return found
}

// fields are those of the objects of a claim, and of the driver's requests for them, by their paths.
func (u *user) fields(by string) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for _, object := range u.attached {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1.")
		object.SetManagedFields(nil)
		object.SetResourceVersion("")
		flatten(all, kind, object, u.same())
	}
	u.addRequest(all, by, "CreateVolume")
	u.addRequest(all, by, "ControllerPublishVolume")
	return all
}

func (u *user) addRequest(all map[string]string, by, method string) {
	GinkgoHelper()
	of := u.handle()
	if method == "CreateVolume" {
		of = u.pv.Name
	}
	text, err := protojson.Marshal(u.driver.request(by, method, of))
	Expect(err).NotTo(HaveOccurred())
	flatten(all, method, json.RawMessage(text), u.same())
}

// same replaces names and ids that no two claims share by the same words.
func (u *user) same() *strings.Replacer {
	words := []string{
		string(u.claim.UID), "CLAIM", string(u.pv.UID), "VOLUME", `"` + u.claim.Name + `"`, `"NAME"`, `"` + u.handle() + `"`, `"HANDLE"`,
	}
	if u.attachment != nil {
		words = append(words, u.attachment.Name, "ATTACHMENT", string(u.attachment.UID), "ATTACHMENT")
	}
	return strings.NewReplacer(words...)
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
