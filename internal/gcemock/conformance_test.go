package gcemock_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"

	"github.com/stowage-dev/stowage/internal/gcemock"
)

// recorder keeps what a client was answered.
type recorder struct {
	mutex   sync.Mutex
	answers []recorded
}

type recorded struct {
	verb, path string
	status     int
	body       []byte
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(body))
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.answers = append(r.answers, recorded{request.Method, request.URL.Path, answer.StatusCode, body})
	return answer, err
}

func TestAnswersHaveTheFormThatGoogleDocuments(t *testing.T) {
	record := &recorder{}
	c := open(t, options(t), option.WithHTTPClient(&http.Client{Transport: record}))
	driveAll(c)

	described := readDescription(t)
	served := map[string]bool{}
	for _, answer := range record.answers {
		method, form := described.responseOf(answer)
		if method == "" {
			t.Errorf("Google has no %s %s", answer.verb, answer.path)
			continue
		}
		served[method] = true
		var body any
		if err := json.Unmarshal(answer.body, &body); err != nil || answer.status != http.StatusOK {
			t.Errorf("%s: %d %v %s", method, answer.status, err, answer.body)
		}
		for _, fault := range described.faultsOf(body, form, method) {
			t.Error(fault)
		}
	}
	for _, method := range gcemock.Methods() {
		if !served[method] {
			t.Errorf("the client never called %s", method)
		}
	}
}

func TestAnswersOfAnotherFormAreFound(t *testing.T) {
	described := readDescription(t)
	disk := map[string]any{
		"kind": "compute#volume", "size": "10", "sizeGb": 10.0, "status": "GOOD", "users": "node", "id": "ten",
	}
	if faults := described.faultsOf(disk, schema{Ref: "Disk"}, "disk"); len(faults) != len(disk) {
		t.Errorf("found %q", faults)
	}
}

func TestLinksLeadToWhatTheyName(t *testing.T) {
	record := &recorder{}
	c := open(t, options(t), option.WithHTTPClient(&http.Client{Transport: record}))
	driveAll(c)

	links := map[string]bool{}
	for _, answer := range record.answers {
		for _, link := range regexp.MustCompile(`"(`+c.url+`[^"]*)"`).FindAllStringSubmatch(string(answer.body), -1) {
			links[link[1]] = true
		}
	}
	for link := range links {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		// What was deleted on the way is gone; nothing else is.
		if answer.StatusCode != http.StatusOK && !strings.Contains(link, "gone") {
			t.Errorf("%s answers %s", link, answer.Status)
		}
	}
	if len(links) < 20 {
		t.Errorf("only %d links were found", len(links))
	}
}

// responseOf finds the method that was called, and the form of its answer.
func (d description) responseOf(answer recorded) (method string, form schema) {
	for resource, calls := range d.Resources {
		for name, call := range calls.Methods {
			if call.HTTPMethod == answer.verb && fits(answer.path, "/compute/v1/"+call.Path) {
				return resource + "." + name, call.Response
			}
		}
	}
	return "", schema{}
}

// fits reports whether a path is one of a pattern with parts such as {zone}.
func fits(path, pattern string) bool {
	parts, wanted := strings.Split(path, "/"), strings.Split(pattern, "/")
	return slices.EqualFunc(parts, wanted, func(part, want string) bool {
		return part == want || strings.HasPrefix(want, "{")
	})
}

// driveAll calls every method that is served, with Google's own client. What it
// deletes is called gone.
func driveAll(c *cloud) {
	c.Helper()
	try := func(_ any, err error) {
		c.Helper()
		if err != nil {
			c.Fatal(err)
		}
	}
	driveDisks(c, try)
	driveInstances(c, try)
	driveSnapshots(c, try)

	driveCatalog(c, try)
	driveRegionDisks(c, try)
	driveCopies(c, try)
	drivePools(c, try)
	try(c.Disks.List(project, zone).Filter(`name = "kept"`).MaxResults(1).Do())
	try(c.Disks.AggregatedList(project).Do())
	try(c.Instances.List(project, zone).Do())
	try(c.Instances.AggregatedList(project).Do())
	try(c.Snapshots.List(project).Do())
	try(c.Snapshots.Get(project, "copy").Do())
	driveOperations(c, try)
}

func driveDisks(c *cloud, try func(any, error)) {
	c.Helper()
	c.makeDisk("gone")
	c.done(c.Disks.Delete(project, zone, "gone").Do())
	c.done(c.Disks.Insert(project, zone, &compute.Disk{
		Name: "kept", Type: "zones/" + zone + "/diskTypes/hyperdisk-balanced", ProvisionedIops: 3000,
		ProvisionedThroughput: 150, Labels: map[string]string{"team": "storage"}, Description: "kept",
	}).Do())
	c.done(c.Disks.Resize(project, zone, "kept", &compute.DisksResizeRequest{SizeGb: 200}).Do())
	c.done(c.Disks.Update(project, zone, "kept", &compute.Disk{ProvisionedIops: 4000}).Paths("provisionedIops").Do())
	c.done(c.Disks.SetLabels(project, zone, "kept", &compute.ZoneSetLabelsRequest{
		Labels: map[string]string{"team": "network"}, LabelFingerprint: c.disk("kept").LabelFingerprint,
	}).Do())
	try(c.Disks.Get(project, zone, "kept").Do())
}

func driveInstances(c *cloud, try func(any, error)) {
	c.Helper()
	for _, name := range []string{"node", "gone-node"} {
		c.done(c.Instances.Insert(project, zone, &compute.Instance{
			Name: name, MachineType: "zones/" + zone + "/machineTypes/c3-standard-4",
		}).Do())
	}
	c.done(c.Instances.Delete(project, zone, "gone-node").Do())
	c.done(c.attach("node", "kept", "READ_WRITE").Do())
	try(c.Disks.Get(project, zone, "kept").Do())
	try(c.Instances.Get(project, zone, "node").Do())
	c.done(c.Instances.Reset(project, zone, "node").Do())
	c.done(c.Instances.Stop(project, zone, "node").Do())
	c.done(c.Instances.Start(project, zone, "node").Do())
	c.done(c.detach("node", "kept").Do())
	c.ended(c.attach("node", "kept", "READ_ONLY").Do())
}

func driveSnapshots(c *cloud, try func(any, error)) {
	c.Helper()
	c.done(c.Disks.CreateSnapshot(project, zone, "kept", &compute.Snapshot{Name: "copy"}).Do())
	c.done(c.Snapshots.Insert(project, &compute.Snapshot{Name: "gone-copy", SourceDisk: diskLink("kept")}).Do())
	c.done(c.Snapshots.Delete(project, "gone-copy").Do())
	c.done(c.Disks.Insert(project, zone, &compute.Disk{Name: "copied", SourceSnapshot: "global/snapshots/copy"}).Do())
	try(c.Disks.Get(project, zone, "copied").Do())
}
